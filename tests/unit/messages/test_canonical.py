"""Digests say what a message means and nothing else; the chain names a whole prefix by one hash."""

import json
import sys
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnfold.messages.canonical import (
    GENESIS,
    RECIPE,
    canonical_arguments,
    chain_of,
    digest,
    digest_text,
    extend_chain,
    js_json,
    js_number,
)
from turnfold.messages.model import Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult, Usage, text_message
from turnfold.testing.strategies import json_values, messages


def call(arguments: str, name: str = "bash", call_id: str = "c1") -> Message:
    """Return a message of one call."""
    return Message(id="m", role="assistant", parts=(ToolCall(id=call_id, name=name, arguments=arguments),))


@given(messages())
def test_a_digest_ignores_what_clients_do_not_send_back(message: Message) -> None:
    """Another id, time, usage, stop reason, model, metadata, reasoning or provider payload is the same message."""
    other = msgspec.structs.replace(
        message,
        id=message.id + "x",
        created_at=7,
        usage=Usage(input=9),
        stop_reason="else",
        model="another",
        metadata={"a": 1},
        parts=(Reasoning(text="thinking", payload="{}"), *message.parts, Opaque(source="x", payload="[1]")),
    )
    assert digest(other) == digest(message)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (text_message("m", "user", "a"), text_message("m", "assistant", "a")),
        (text_message("m", "user", "a"), text_message("m", "user", "A")),
        (text_message("m", "user", "a"), text_message("m", "user", "a ")),
        (call('{"a":1}'), call('{"a":2}')),
        (call('{"a":1}'), call('{"a":"1"}')),
        (call('{"a":1}', name="x"), call('{"a":1}', name="y")),
        (call("not json"), call('["raw","not json"]')),
        (
            Message(id="m", role="user", parts=(Image(data="aGk="),)),
            Message(id="m", role="user", parts=(Image(data="aGo="),)),
        ),
        (
            Message(id="m", role="tool", parts=(ToolResult(call_id="c", content=(Text(text="1"),)),)),
            Message(id="m", role="tool", parts=(ToolResult(call_id="c", content=(Text(text="2"),)),)),
        ),
        (
            Message(id="m", role="user", parts=(Text(text="a"), Text(text="b"))),
            Message(id="m", role="user", parts=(Text(text="b"), Text(text="a"))),
        ),
    ],
)
def test_a_digest_changes_with_the_meaning(one: Message, other: Message) -> None:
    """Role, text, its order, images, calls and results are the meaning."""
    assert digest(one) != digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":1,"b":2}', '{ "b": 2, "a": 1 }'),
        ('{"a":1.0}', '{"a":1}'),
        ('{"a":"\\u4e2d"}', '{"a":"中"}'),
        ("", "{}"),
        ("  ", "{}"),
        ('{"a":1e2}', '{"a":100}'),
    ],
)
def test_arguments_are_compared_as_json(one: str, other: str) -> None:
    """Spaces, the order of keys and ways to write a number or a character are not meaning."""
    assert digest(call(one)) == digest(call(other))


def test_call_ids_are_not_meaning() -> None:
    """Providers and formats rename calls; the digest stays."""
    assert digest(call("{}", call_id="c1")) == digest(call("{}", call_id="toolu_2"))


@given(json_values)
def test_canonical_json_is_json_of_the_same_value(value: object) -> None:
    """What is written parses to what was given, whatever the order of keys."""
    same = json.loads(json.dumps(value), parse_int=float)  # JavaScript writes a large number without an exponent
    assert json.loads(js_json(value), parse_int=float) == same
    assert json.loads(js_json(value, sort=True), parse_int=float) == same


@given(st.dictionaries(st.text(), json_values, max_size=5), st.randoms())
def test_the_order_of_keys_never_matters(value: dict[str, object], random: object) -> None:
    """Sorted, equal objects are equal texts."""
    items = list(value.items())
    random.shuffle(items)  # type: ignore[attr-defined]
    assert js_json(dict(items), sort=True) == js_json(value, sort=True)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.1, "0.1"),
        (-0.0, "0"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1.5e300, "1.5e+300"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (-1.25e-9, "-1.25e-9"),
        (5e-324, "5e-324"),
        (float("nan"), "null"),
        (float("-inf"), "null"),
        (-12.5, "-12.5"),
    ],
)
def test_numbers_are_written_as_javascript_writes_them(value: float, written: str) -> None:
    """Values of ECMA-262's Number::toString, so that vectors made elsewhere compare equal."""
    assert js_number(value) == written


def test_keys_are_ordered_by_utf16_units() -> None:
    """As RFC 8785 orders them: a character beyond the basic plane sorts before U+FB33."""
    assert js_json({"\ufb33": 1, "😂": 2, "\r": 3, "1": 4}, sort=True) == '{"\\r":3,"1":4,"😂":2,"\ufb33":1}'


def test_a_digest_carries_its_recipe() -> None:
    """A changed recipe can never be taken for changed content."""
    assert digest(text_message("m", "user", "a")).startswith(f"{RECIPE}:")
    assert digest_text("a") != digest_text("a", "")
    assert GENESIS.startswith(f"{RECIPE}:")


def test_unpaired_surrogates_have_a_digest() -> None:
    """Half an emoji, as cut strings in old files have it, is not an error."""
    assert digest(text_message("m", "user", "\ud83d")) != digest(text_message("m", "user", "\ud83e"))


def deeper(frames: int, do: Callable[[], str]) -> str:
    """Call from `frames` further down the stack."""
    return do() if not frames else deeper(frames - 1, do)


@pytest.mark.parametrize("depth", [1, 40, 64, 65, 200, 300, 400, 470, 600, 900, 5000])
def test_a_digest_does_not_depend_on_who_asks(depth: int) -> None:
    """Deeply nested arguments digest the same from a shallow stack and from a deep one; else a chain would not verify."""
    arguments = '{"a":' * depth + "[ ]" + "}" * depth
    top = canonical_arguments(arguments)
    assert {deeper(frames, lambda: canonical_arguments(arguments)) for frames in (50, 150, 300)} == {top}


def test_deep_arguments_below_the_limit_are_still_json() -> None:
    """Nesting that occurs in practice is compared as JSON, not as text."""
    nested = '{"a":' * 30 + "1" + "}" * 30
    assert canonical_arguments(nested) == canonical_arguments(nested.replace(":", " : "))
    assert sys.getrecursionlimit() >= 1000


@given(st.lists(messages(), max_size=6), st.integers(0, 6))
def test_a_chain_grows_message_by_message(rows: list[Message], cut: int) -> None:
    """The chain of a prefix, continued, is the chain of the whole."""
    assert chain_of(rows[cut:], chain_of(rows[:cut])) == chain_of(rows)


@given(st.lists(messages(), min_size=1, max_size=6), st.data())
def test_any_edit_in_a_prefix_changes_every_later_chain(rows: list[Message], data: st.DataObject) -> None:
    """A message changed, removed, added or moved gives another chain, and it never comes back."""
    at = data.draw(st.integers(0, len(rows) - 1))
    edited = msgspec.structs.replace(rows[at], parts=(*rows[at].parts, Text(text="!")))
    changed = [
        [*rows[:at], edited, *rows[at + 1 :]],
        [*rows[:at], *rows[at + 1 :]],
        [*rows[:at], text_message("new", "user", "!"), *rows[at:]],
    ]
    assert chain_of(rows) not in {chain_of(each) for each in changed}


@pytest.mark.parametrize("kind", ["summary", "memory_update", "reminder"])
def test_other_kinds_are_outside_the_chain(kind: str) -> None:
    """Rows that turnfold writes between messages leave the chain as it is."""
    row = msgspec.convert({"id": "s", "role": "user", "kind": kind}, Message)
    said = text_message("m", "user", "a")
    assert chain_of([row, said, row]) == chain_of([said]) == extend_chain(GENESIS, digest(said))
