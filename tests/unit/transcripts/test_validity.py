"""The checkers can fail: each kind of request that providers refuse is refused here, by its rule, and nothing else is."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from turnfold.transcripts.validity import CHECKS, check_openai_chat

PNG = "aGk="
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL, {**CHAT_CALL, "id": "c2"}]},
        {"role": "tool", "tool_call_id": "c2", "content": "2"},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "more"},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
}
THINKING = {"type": "thinking", "thinking": "hm", "signature": "sig"}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "1"}
ANTHROPIC: dict[str, Any] = {
    "system": "Be brief.",
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "messages": [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": [
                THINKING,
                {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
                {"type": "tool_use", "id": "t2", "name": "f", "input": {"a": 1}},
            ],
        },
        {"role": "user", "content": [RESULT, {**RESULT, "tool_use_id": "t2", "is_error": True}]},
    ],
    "tools": [{"name": "f", "input_schema": {"type": "object"}}],
}
REASONING = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "gAAA"}
RESPONSES: dict[str, Any] = {
    "store": False,
    "input": [
        {"role": "user", "content": "go"},
        REASONING,
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "2"}]},
        {**REASONING, "id": "rs2"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
    ],
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
}
VALID = {"openai_chat": CHAT, "anthropic": ANTHROPIC, "openai_responses": RESPONSES}

Change = Callable[[Any, list[Any]], object]


def drop(*indexes: int) -> Change:
    """Remove messages, as a cut at the wrong place does."""
    return lambda _, m: [m.pop(index) for index in sorted(indexes, reverse=True)]


def put(index: int, *items: Any) -> Change:
    """Insert messages."""
    return lambda _, m: m.__setitem__(slice(index, index), list(items))


def merge(index: int, **fields: Any) -> Change:
    """Change fields of a message."""
    return lambda _, m: m[index].update(fields)


def content(index: int, *blocks: Any) -> Change:
    """Replace the content of a message."""
    return merge(index, content=list(blocks))


def body(**fields: Any) -> Change:
    """Change fields of the request."""
    return lambda b, _: b.update(fields)


def call(index: int, **fields: Any) -> Change:
    """Change fields of the first call of a chat message."""
    return lambda _, m: m[index]["tool_calls"][0].update(fields)


BROKEN: list[tuple[str, str, str, Change]] = [
    # a result without its call; one of several parallel calls cut off; a cut between a call and its result
    ("openai_chat", "call cut off", "result-without-call", drop(2)),
    ("openai_chat", "one parallel result cut off", "call-without-result", drop(4)),
    ("openai_chat", "cut between call and result", "call-without-result", drop(3, 4)),
    ("openai_chat", "pending call sent", "call-without-result", drop(3, 4, 5, 6)),
    ("openai_chat", "something between call and result", "call-without-result", put(3, {"role": "user", "content": "x"})),
    ("openai_chat", "result given twice", "result-without-call", put(5, {"role": "tool", "tool_call_id": "c1", "content": ""})),
    ("openai_chat", "orphan in old history", "result-without-call", put(1, {"role": "tool", "tool_call_id": "x", "content": ""})),
    ("openai_chat", "system summary after a user message", "system-first", put(7, {"role": "system", "content": "summary"})),
    ("openai_chat", "unknown role", "role", merge(6, role="toolResult")),
    ("openai_chat", "no messages", "empty", body(messages=[])),
    ("openai_chat", "nothing said", "content", merge(5, content=None)),
    ("openai_chat", "user without content", "content", merge(6, content=None)),
    ("openai_chat", "empty parts", "empty", content(6)),
    ("openai_chat", "empty calls", "empty", merge(5, tool_calls=[])),
    ("openai_chat", "image in a tool result", "part-type", content(3, {"type": "image_url", "image_url": {"url": "https://x"}})),
    ("openai_chat", "image that is no image", "image", content(6, {"type": "image_url", "image_url": {"url": "file:///x"}})),
    ("openai_chat", "image data broken", "image", content(6, {"type": "image_url", "image_url": {"url": "data:image/png;base64,?"}})),
    ("openai_chat", "image of a strange type", "image", content(6, {"type": "image_url", "image_url": {"url": f"data:image/tiff;base64,{PNG}"}})),
    ("openai_chat", "text part without text", "shape", content(6, {"type": "text"})),
    ("openai_chat", "message that is text", "shape", put(6, "hello")),
    ("openai_chat", "internal field sent", "unknown-field", merge(6, timestamp=1)),
    ("openai_chat", "name with a space", "name", merge(6, name="two words")),
    ("openai_chat", "call id too long", "call-id", call(2, id="x" * 41)),
    ("openai_chat", "call id twice", "call-id", call(2, id="c2")),
    ("openai_chat", "arguments as an object", "shape", call(2, function={"name": "f", "arguments": {}})),
    ("openai_chat", "tool name in a call", "tool-name", call(2, function={"name": "a.b", "arguments": ""})),
    ("openai_chat", "call of an unknown type", "shape", call(2, type="magic")),
    ("openai_chat", "tools without a name", "tool-name", body(tools=[{"type": "function", "function": {}}])),
    ("openai_chat", "two tools of one name", "tool-name", body(tools=CHAT["tools"] * 2)),
    ("openai_chat", "tool schema", "tool-schema", body(tools=[{"type": "function", "function": {"name": "f", "parameters": []}}])),
    ("anthropic", "call cut off", "result-without-call", drop(0, 1)),
    ("anthropic", "one parallel result cut off", "call-without-result", content(2, RESULT)),
    ("anthropic", "pending call sent", "call-without-result", drop(2)),
    ("anthropic", "result after text", "results-first", content(2, RESULT, {"type": "text", "text": "x"}, {**RESULT, "tool_use_id": "t2"})),
    ("anthropic", "result given twice", "result-without-call", content(2, RESULT, RESULT, {**RESULT, "tool_use_id": "t2"})),
    ("anthropic", "result far from its call", "call-without-result", put(2, {"role": "user", "content": "x"})),
    ("anthropic", "roles do not alternate", "alternate", put(0, {"role": "user", "content": "summary"})),
    ("anthropic", "assistant first", "user-first", drop(0)),
    ("anthropic", "system role", "role", put(1, {"role": "system", "content": "summary"})),
    ("anthropic", "no messages", "empty", body(messages=[])),
    ("anthropic", "empty content", "empty", content(0)),
    ("anthropic", "empty text", "blank-text", content(0, {"type": "text", "text": ""})),
    ("anthropic", "blank text", "blank-text", merge(0, content=" \n")),
    ("anthropic", "blank system", "blank-text", body(system=[{"type": "text", "text": " "}])),
    ("anthropic", "thinking lost from its tool loop", "thinking-lost", lambda _, m: m[1]["content"].pop(0)),
    ("anthropic", "thinking alone", "thinking-alone", put(1, {"role": "assistant", "content": [THINKING]})),
    ("anthropic", "thinking without signature", "thinking-signature", lambda _, m: m[1]["content"].insert(0, {"type": "thinking", "thinking": "x"})),
    ("anthropic", "redacted thinking without data", "thinking-signature", lambda _, m: m[1]["content"].insert(0, {"type": "redacted_thinking"})),
    ("anthropic", "thinking in a user message", "part-type", content(0, THINKING)),
    ("anthropic", "prefill while thinking", "prefill", put(3, {"role": "assistant", "content": "So"})),
    ("anthropic", "blank end", "trailing-space", put(3, {"role": "assistant", "content": "So "})),
    ("anthropic", "image in an assistant message", "part-type", put(3, {"role": "assistant", "content": [{"type": "image", "source": {"type": "url", "url": "https://x"}}]})),
    ("anthropic", "image type", "image", content(0, {"type": "image", "source": {"type": "base64", "media_type": "image/svg+xml", "data": PNG}})),
    ("anthropic", "image data", "image", content(0, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "?"}})),
    ("anthropic", "image address", "image", content(0, {"type": "image", "source": {"type": "url", "url": "file:///x"}})),
    ("anthropic", "image without source", "image", content(0, {"type": "image"})),
    ("anthropic", "call id", "call-id", lambda _, m: m[1]["content"][1].update(id="functions.f:0")),
    ("anthropic", "call id twice", "call-id", lambda _, m: m[1]["content"][2].update(id="t1")),
    ("anthropic", "call input as text", "shape", lambda _, m: m[1]["content"][1].update(input="{}")),
    ("anthropic", "tool name in a call", "tool-name", lambda _, m: m[1]["content"][1].update(name="a b")),
    ("anthropic", "unknown field", "unknown-field", merge(0, id="m1")),
    ("anthropic", "five breakpoints", "breakpoints", content(0, *[{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}] * 5)),
    ("anthropic", "breakpoint on thinking", "breakpoints", lambda _, m: m[1]["content"][0].update(cache_control={"type": "ephemeral"})),
    ("anthropic", "blank text in a result", "blank-text", lambda _, m: m[2]["content"][0].update(content=[{"type": "text", "text": ""}])),
    ("anthropic", "strange block in a result", "part-type", lambda _, m: m[2]["content"][0].update(content=[THINKING])),
    ("anthropic", "tools without a name", "tool-name", body(tools=[{"input_schema": {"type": "object"}}])),
    ("openai_responses", "call cut off", "result-without-call", drop(2)),
    ("openai_responses", "output cut off", "call-without-result", drop(4)),
    ("openai_responses", "output before its call", "result-without-call", lambda _, m: m.insert(2, m.pop(4))),
    ("openai_responses", "reasoning separated from its call", "reasoning-alone", drop(2, 3, 4, 5, 6, 7)),
    ("openai_responses", "reasoning before a user message", "reasoning-alone", put(2, {"role": "user", "content": "x"})),
    ("openai_responses", "reasoning before an output", "reasoning-alone", put(4, {**REASONING, "id": "r"})),
    ("openai_responses", "reasoning without its content", "reasoning-content", merge(1, encrypted_content=None)),
    ("openai_responses", "reasoning without summary", "shape", merge(1, summary=None)),
    ("openai_responses", "same item twice", "duplicate-id", merge(6, id="rs")),
    ("openai_responses", "call id twice", "call-id", merge(3, call_id="c1")),
    ("openai_responses", "call id too long", "call-id", merge(2, call_id="x" * 65)),
    ("openai_responses", "arguments as an object", "shape", merge(2, arguments={})),
    ("openai_responses", "tool name", "tool-name", merge(2, name="a.b")),
    ("openai_responses", "input text from the assistant", "part-type", content(7, {"type": "input_text", "text": "x"})),
    ("openai_responses", "output text from the user", "part-type", content(0, {"type": "output_text", "text": "x"})),
    ("openai_responses", "unknown role", "role", merge(0, role="tool")),
    ("openai_responses", "no items", "empty", body(input=[])),
    ("openai_responses", "empty content", "empty", content(0)),
    ("openai_responses", "item without type", "shape", put(0, {"text": "x"})),
    ("openai_responses", "image", "image", content(0, {"type": "input_image", "image_url": "data:image/png;base64,?"})),
    ("openai_responses", "text part without text", "shape", content(0, {"type": "input_text"})),
]  # fmt: skip


@pytest.mark.parametrize("name", VALID)
def test_a_sound_request_has_no_violation(name: str) -> None:
    """The requests that the broken ones are made from are fine."""
    assert CHECKS[name](copy.deepcopy(VALID[name])) == ()


@pytest.mark.parametrize(("name", "case", "rule", "change"), BROKEN, ids=[f"{b[0]}: {b[1]}" for b in BROKEN])
def test_a_request_that_a_provider_refuses_is_refused(name: str, case: str, rule: str, change: Change) -> None:
    """Each broken request gives its rule, with a place and a sentence."""
    request = copy.deepcopy(VALID[name])
    change(request, request["input" if name == "openai_responses" else "messages"])
    violations = CHECKS[name](request)
    assert rule in {violation.rule for violation in violations}, case
    assert all(violation.place and violation.detail for violation in violations)


def test_later_system_messages_can_be_allowed() -> None:
    """OpenAI itself takes them; the checker says no only to be safe with other servers."""
    request = {"messages": [*CHAT["messages"], {"role": "system", "content": "x"}]}
    assert check_openai_chat(request, system_first=False) == ()


@pytest.mark.parametrize("name", VALID)
@pytest.mark.parametrize(
    "junk", [None, 1, "x", [], [None], [[]], [{}], [{"role": 1}], [{"type": []}], [{"role": "user", "content": [1]}]]
)
def test_junk_is_refused_and_never_crashes_the_checker(name: str, junk: Any) -> None:
    """Whatever stands where messages should be gives violations, not exceptions."""
    key = "input" if name == "openai_responses" else "messages"
    if not (name == "openai_responses" and junk == "x"):
        assert CHECKS[name]({key: junk})
