"""Rules of OpenAI Chat Completions (API reference, and its own error messages)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from turnfold.transcripts.validity.rules import Violation, bad_image_url, check_tools, is_text, objects

_PARTS: Final = {
    "system": frozenset({"text"}),
    "developer": frozenset({"text"}),
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "assistant": frozenset({"text", "refusal"}),
    "tool": frozenset({"text"}),
}
_FIELDS: Final = {
    "system": frozenset({"role", "content", "name"}),
    "developer": frozenset({"role", "content", "name"}),
    "user": frozenset({"role", "content", "name"}),
    "assistant": frozenset(
        {"role", "content", "name", "refusal", "audio", "function_call", "tool_calls", "reasoning_content"}
    ),
    "tool": frozenset({"role", "content", "tool_call_id"}),
    "function": frozenset({"role", "content", "name"}),
}
_TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NAME: Final = re.compile(r"[^\s<|\\/>]{1,64}")
MAX_CALL_ID: Final = 40
"""Characters of a call's id; longer ones are refused ("expected a string with maximum length 40")."""


def check_openai_chat(body: dict[str, Any], *, system_first: bool = True) -> tuple[Violation, ...]:
    """Return what the API would refuse in a request.

    With `system_first`, a system message after the conversation has begun is a violation: OpenAI takes it, many servers
    that speak its API do not.
    """
    checker = _Checker(system_first)
    found = list(check_tools(body.get("tools"), ("function", "parameters"), ("function", "name"), 64))
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return (*found, Violation(place="messages", rule="empty", detail="there must be at least one message"))
    for item in objects(messages, "messages"):
        found.extend([item] if isinstance(item, Violation) else checker.message(*item))
    found.extend(checker.unanswered("messages"))
    return tuple(found)


class _Checker:
    """Walks the messages; `waiting` holds the calls of the last assistant message that have no result yet."""

    def __init__(self, system_first: bool) -> None:
        self.waiting: dict[str, None] = {}
        self.system_first, self.begun = system_first, False

    def message(self, place: str, message: dict[str, Any]) -> Iterator[Violation]:
        role = message.get("role")
        if not isinstance(role, str) or role not in _FIELDS:
            yield Violation(place=place, rule="role", detail=f"the role {role!r} is unknown")
            return
        if role == "tool":
            yield from self.result(place, message)
        else:
            yield from self.unanswered(place)
        if role in ("system", "developer") and self.begun and self.system_first:
            yield Violation(place=place, rule="system-first", detail="system messages stand before all others")
        self.begun = self.begun or role not in ("system", "developer")
        yield from _fields(place, role, message)
        yield from _content(place, role, message)
        if role == "assistant":
            yield from self.calls(place, message)

    def unanswered(self, place: str) -> Iterator[Violation]:
        if self.waiting:
            missing = ", ".join(self.waiting)
            yield Violation(
                place=place,
                rule="call-without-result",
                detail=f"calls must be followed by their results; missing: {missing}",
            )
        self.waiting = {}

    def result(self, place: str, message: dict[str, Any]) -> Iterator[Violation]:
        given = message.get("tool_call_id")
        if given in self.waiting:
            del self.waiting[given]
            return
        detail = f"a tool message must answer a call of the assistant message before it; {given!r} does not"
        yield Violation(place=place, rule="result-without-call", detail=detail)

    def calls(self, place: str, message: dict[str, Any]) -> Iterator[Violation]:
        if "tool_calls" not in message:
            return
        if not message["tool_calls"]:
            yield Violation(place=place, rule="empty", detail="tool_calls must not be empty")
        for item in objects(message["tool_calls"], f"{place}.tool_calls"):
            yield from [item] if isinstance(item, Violation) else self.call(*item)

    def call(self, place: str, call: dict[str, Any]) -> Iterator[Violation]:
        given, function = call.get("id"), call.get("function") or call.get("custom")
        if not is_text(given) or len(given) > MAX_CALL_ID:
            yield Violation(place=place, rule="call-id", detail=f"a call's id has 1 to {MAX_CALL_ID} characters")
        elif given in self.waiting:
            yield Violation(place=place, rule="call-id", detail=f"two calls have the id {given!r}")
        if isinstance(given, str):
            self.waiting[given] = None
        if call.get("type") not in ("function", "custom") or not isinstance(function, dict):
            yield Violation(place=place, rule="shape", detail="a call is of type function or custom")
            return
        if not isinstance(function.get("name"), str) or not _TOOL_NAME.fullmatch(function["name"]):
            yield Violation(place=place, rule="tool-name", detail=f"a tool's name must match {_TOOL_NAME.pattern}")
        if not isinstance(function.get("arguments", function.get("input")), str):
            yield Violation(place=place, rule="shape", detail="arguments must be text")


def _fields(place: str, role: str, message: dict[str, Any]) -> Iterator[Violation]:
    for name in message.keys() - _FIELDS[role]:
        yield Violation(place=place, rule="unknown-field", detail=f"a {role} message has no field {name!r}")
    named = message.get("name")
    if named is not None and not (isinstance(named, str) and _NAME.fullmatch(named)):
        yield Violation(place=place, rule="name", detail=f"a name must match {_NAME.pattern}")


def _content(place: str, role: str, message: dict[str, Any]) -> Iterator[Violation]:
    content = message.get("content")
    if isinstance(content, str):
        return
    if content is None:
        may_lack = role == "function" or (
            role == "assistant" and (message.get("tool_calls") or message.get("function_call"))
        )
        if not may_lack and not (role == "assistant" and message.get("refusal")):
            yield Violation(place=place, rule="content", detail=f"a {role} message needs content")
        return
    if content == []:
        yield Violation(place=place, rule="empty", detail="a list of content parts must not be empty")
    for item in objects(content, f"{place}.content"):
        yield from [item] if isinstance(item, Violation) else _part(*item, role)


def _part(place: str, part: dict[str, Any], role: str) -> Iterator[Violation]:
    kind = part.get("type")
    if kind not in _PARTS.get(role, frozenset()):
        yield Violation(place=place, rule="part-type", detail=f"a {role} message cannot hold {kind!r} content")
    elif kind == "text" and not isinstance(part.get("text"), str):
        yield Violation(place=place, rule="shape", detail="a text part needs text")
    elif kind == "image_url":
        inner = part.get("image_url")
        problem = bad_image_url(inner.get("url") if isinstance(inner, dict) else None)
        if problem:
            yield Violation(place=place, rule="image", detail=problem)
