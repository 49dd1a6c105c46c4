"""Request files: messages in OpenAI's form with the product's own ids, and every problem with its path."""

import json
from typing import Any

import pytest

from turnfold.config.request import Request, check_groups, load_request, request_of
from turnfold.config.scenario import scenario_of
from turnfold.errors import ConfigError
from turnfold.messages.model import Text, ToolCall


def request(**fields: Any) -> Request:
    """A request of one conversation."""
    return request_of({"conversationId": "c", **fields})


def problems_of(**fields: Any) -> tuple[str, ...]:
    """The problems of a request."""
    with pytest.raises(ConfigError) as caught:
        request(**fields)
    return caught.value.problems


def test_ids_are_the_products_own_or_none() -> None:
    """A message without an id gets none made up: a made-up one would change when the history window slides."""
    messages = [{"id": "u1", "role": "user", "content": "你好"}, {"role": "assistant", "content": "你好呀"}]
    assert [message.id for message in request(history=messages).history] == ["u1", ""]


def test_every_part_is_read() -> None:
    """Fixed prompt, history, injected content and the new line become messages; tools become tools."""
    read = request(
        fixedPrompt=[{"role": "developer", "content": "d"}],
        history=[
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "t", "content": [{"type": "text", "text": "42"}]},
        ],
        injected=[{"role": "system", "content": "now"}],
        incoming=[{"role": "user", "content": "hi"}],
        tools=[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    )
    assert [message.role for message in read.fixed_prompt] == ["system"]
    assert read.history[0].calls == (ToolCall(id="t", name="f", arguments="{}"),)
    assert read.history[1].results[0].content == (Text(text="42"),)
    assert [message.text for message in (*read.injected, *read.incoming)] == ["now", "hi"]
    assert [tool.name for tool in read.tools] == ["f"]


def test_half_a_character_does_not_block_a_conversation() -> None:
    """An emoji cut in half by a client is replaced: it may stand in old history for good."""
    data = rb'{"conversationId": "c", "history": [{"id": "u", "role": "user", "content": "\ud83d"}]}'
    assert load_request(data).history[0].text == "\ufffd"


def test_all_problems_of_a_request_come_at_once() -> None:
    """Wrong types, unknown names and the scenario inside are said together, each with its path."""
    problems = problems_of(
        historry=[],
        history=[{"role": "usr", "content": "x"}, {"id": 7, "role": "user", "content": "x"}, "hi"],
        maxOutput=0,
        scenarioConfig={"compact": {"enabled": True, "triggerRatio": 1}},
        modelConfigs={"models": {"m": {"provider": "none"}}},
        groups=["u1"],
    )
    assert [problem.split(": ")[0] for problem in problems] == [
        "historry",
        "history[0].role",
        "history[1].id",
        "history[2]",
        "maxOutput",
        "scenarioConfig.compact.triggerRatio",
        "scenarioConfig.compact.compactorModelConfigId",
        "modelConfigs.models.m.provider",
        "groups[0]",
    ]


def test_all_unreadable_messages_are_named() -> None:
    """A message that no model could be sent is a problem at its place."""
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    problems = problems_of(
        history=[{"role": "user", "content": 3}, {"role": "tool", "content": "x"}],
        incoming=[{"role": "user", "content": [{"text": "no type"}]}, {"role": "user", "content": deep}],
    )
    assert [problem.split(": ")[0] for problem in problems] == [
        "history[0]",
        "history[1]",
        "incoming[0]",
        "incoming[1]",
    ]


@pytest.mark.parametrize(
    "data", [b"[]", b"{}", b"{", b'{"conversationId": ""}', b'{"conversationId": "a", "conversationId": "b"}']
)
def test_a_document_that_is_no_request_is_refused(data: bytes) -> None:
    """The conversation must be named, once."""
    with pytest.raises(ConfigError):
        load_request(data)


@pytest.mark.parametrize(
    ("mode", "groups", "paths"),
    [
        ("selected_turns", None, []),
        ("selected_turns", [["u1"]], ["groups"]),
        ("explicit_groups", None, ["groups"]),
        ("explicit_groups", [["u1"]], []),
        ("explicit_groups", [], []),
    ],
)
def test_groups_go_with_their_boundary_mode(mode: str, groups: Any, paths: list[str]) -> None:
    """Groups that would be passed over in silence are refused, and so is their absence where they are needed."""
    scenario = scenario_of({"compact": {"enabled": True, "compactorModelConfigId": "m", "boundaryMode": mode}})
    fields = {} if groups is None else {"groups": groups}
    assert [problem.path for problem in check_groups(request(**fields).file, scenario)] == paths


def test_a_request_is_the_same_in_a_file() -> None:
    """Bytes and plain values give the same request."""
    value = {"conversationId": "c", "history": [{"id": "u", "role": "user", "content": "钥匙"}], "maxOutput": 5}
    assert load_request(json.dumps(value).encode()) == request_of(value)
