"""Rules of the OpenAI Responses API (API reference, and its own error messages)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from turnfold.transcripts.validity.rules import Violation, bad_image_url, check_tools, is_text, objects

_CONTENT: Final = {
    "user": frozenset({"input_text", "input_image", "input_file", "input_audio"}),
    "system": frozenset({"input_text"}),
    "developer": frozenset({"input_text"}),
    "assistant": frozenset({"output_text", "refusal"}),
    "output": frozenset({"input_text", "input_image", "input_file"}),
}
_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
_OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
MAX_CALL_ID: Final = 64
"""Characters of a call's id; longer ones are refused."""


def check_openai_responses(body: dict[str, Any]) -> tuple[Violation, ...]:
    """Return what the API would refuse in a request that carries its whole input (no `previous_response_id`)."""
    found = list(check_tools(body.get("tools"), ("parameters",), ("name",), 64))
    given = body.get("input")
    if isinstance(given, str) and given:
        return tuple(found)
    if not isinstance(given, list) or not given:
        return (*found, Violation(place="input", rule="empty", detail="there must be at least one item"))
    checker = _Checker(stored=body.get("store") is not False)
    for item in objects(given, "input"):
        found.extend([item] if isinstance(item, Violation) else checker.item(*item))
    found.extend(checker.finish())
    return tuple(found)


class _Checker:
    """Walks the items: which calls wait for their output, and whether reasoning waits for what it led to."""

    def __init__(self, *, stored: bool) -> None:
        self.stored = stored
        self.waiting: dict[str, str] = {}
        self.ids: set[str] = set()
        self.call_ids: set[str] = set()
        self.reasoning: str | None = None

    def item(self, place: str, item: dict[str, Any]) -> Iterator[Violation]:
        kind = item.get("type", "message" if "role" in item else None)
        if not isinstance(kind, str):
            yield Violation(place=place, rule="shape", detail="an item needs a type")
            return
        yield from self.after_reasoning(place, kind, item)
        yield from self.identity(place, item)
        if kind == "message":
            yield from self.message(place, item)
        elif kind == "reasoning":
            yield from self.thought(place, item)
        elif kind in _CALLS:
            yield from self.call(place, item, kind)
        elif kind in _OUTPUTS:
            yield from self.output(place, item)

    def after_reasoning(self, place: str, kind: str, item: dict[str, Any]) -> Iterator[Violation]:
        """Reasoning must be followed by what the model made of it: more reasoning, a message or a call."""
        of_model = kind in _CALLS or kind == "reasoning" or (kind == "message" and item.get("role") == "assistant")
        if self.reasoning and not of_model and (kind == "message" or kind in _OUTPUTS):
            yield _lone_reasoning(self.reasoning)
        self.reasoning = None

    def identity(self, place: str, item: dict[str, Any]) -> Iterator[Violation]:
        given = item.get("id")
        if isinstance(given, str) and given in self.ids:
            yield Violation(place=place, rule="duplicate-id", detail=f"two items have the id {given!r}")
        if isinstance(given, str):
            self.ids.add(given)

    def thought(self, place: str, item: dict[str, Any]) -> Iterator[Violation]:
        self.reasoning = place
        if not isinstance(item.get("summary"), list):
            yield Violation(place=place, rule="shape", detail="a reasoning item needs a summary list")
        if not item.get("encrypted_content") and not self.stored:
            detail = "reasoning that is not stored needs its encrypted content"
            yield Violation(place=place, rule="reasoning-content", detail=detail)

    def message(self, place: str, item: dict[str, Any]) -> Iterator[Violation]:
        role = item.get("role")
        if not isinstance(role, str) or role not in _CONTENT or role == "output":
            yield Violation(place=place, rule="role", detail=f"the role {role!r} is unknown")
            return
        content = item.get("content")
        if isinstance(content, str):
            return
        if content == []:
            yield Violation(place=place, rule="empty", detail="a message needs content")
        yield from _parts(f"{place}.content", content, role)

    def call(self, place: str, item: dict[str, Any], kind: str) -> Iterator[Violation]:
        given = item.get("call_id")
        if not is_text(given) or len(given) > MAX_CALL_ID:
            yield Violation(place=place, rule="call-id", detail=f"a call's id has 1 to {MAX_CALL_ID} characters")
        elif given in self.call_ids:
            yield Violation(place=place, rule="call-id", detail=f"two calls have the id {given!r}")
        if isinstance(given, str):
            self.call_ids.add(given)
            self.waiting[given] = place
        if not isinstance(item.get("name"), str) or not _NAME.fullmatch(item["name"]):
            yield Violation(place=place, rule="tool-name", detail=f"a tool's name must match {_NAME.pattern}")
        if not isinstance(item.get(_CALLS[kind]), str):
            yield Violation(place=place, rule="shape", detail=f"{_CALLS[kind]} must be text")

    def output(self, place: str, item: dict[str, Any]) -> Iterator[Violation]:
        given = item.get("call_id")
        if given not in self.waiting:
            yield Violation(place=place, rule="result-without-call", detail=f"no call before it has the id {given!r}")
        else:
            del self.waiting[given]
        if not isinstance(item.get("output"), str):
            yield from _parts(f"{place}.output", item.get("output"), "output")

    def finish(self) -> Iterator[Violation]:
        if self.reasoning:
            yield _lone_reasoning(self.reasoning)
        for given, place in self.waiting.items():
            yield Violation(place=place, rule="call-without-result", detail=f"the call {given!r} has no output")


def _lone_reasoning(place: str) -> Violation:
    return Violation(
        place=place, rule="reasoning-alone", detail="reasoning must be followed by the item that it led to"
    )


def _parts(place: str, parts: Any, role: str) -> Iterator[Violation]:
    for item in objects(parts, place):
        if isinstance(item, Violation):
            yield item
            continue
        where, part = item
        kind = part.get("type")
        if kind not in _CONTENT[role]:
            yield Violation(place=where, rule="part-type", detail=f"{role} content cannot hold {kind!r}")
        elif kind in ("input_text", "output_text") and not isinstance(part.get("text"), str):
            yield Violation(place=where, rule="shape", detail="a text part needs text")
        elif kind == "input_image" and "file_id" not in part and (problem := bad_image_url(part.get("image_url"))):
            yield Violation(place=where, rule="image", detail=problem)
