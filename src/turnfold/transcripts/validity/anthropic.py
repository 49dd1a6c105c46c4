"""Rules of the Anthropic Messages API (its documentation, and its own error messages)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from turnfold.transcripts.validity.rules import IMAGE_TYPES, Violation, check_tools, is_base64, is_text, objects

_USER: Final = frozenset({"text", "image", "document", "tool_result", "search_result", "container_upload"})
_ASSISTANT_ONLY: Final = frozenset({"thinking", "redacted_thinking", "tool_use", "server_tool_use"})
_THINKING: Final = frozenset({"thinking", "redacted_thinking"})
_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
MAX_BREAKPOINTS: Final = 4
"""Blocks with cache_control that a request may have."""


def check_anthropic(body: dict[str, Any]) -> tuple[Violation, ...]:
    """Return what the API would refuse in a request. Stricter in one point: roles must alternate, where the API would join
    the messages of one role.
    """
    checker = _Checker()
    found = list(check_tools(body.get("tools"), ("input_schema",), ("name",), 128))
    found.extend(_system(body.get("system")))
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return (*found, Violation(place="messages", rule="empty", detail="there must be at least one message"))
    for item in objects(messages, "messages"):
        found.extend([item] if isinstance(item, Violation) else checker.message(*item))
    found.extend(checker.finish())
    found.extend(_thinking_rules(body, [message for message in messages if isinstance(message, dict)]))
    found.extend(_breakpoints(body))
    return tuple(found)


def _system(system: Any) -> Iterator[Violation]:
    if system is None or isinstance(system, str):
        return
    for item in objects(system, "system"):
        if isinstance(item, Violation):
            yield item
        elif item[1].get("type") != "text":
            yield Violation(place=item[0], rule="part-type", detail="the system prompt holds text blocks only")
        else:
            yield from _text(*item)


def _text(place: str, block: dict[str, Any]) -> Iterator[Violation]:
    text = block.get("text")
    if not isinstance(text, str) or not text.strip():
        yield Violation(place=place, rule="blank-text", detail="text blocks must not be empty or blank")


class _Checker:
    """Walks the messages; `waiting` holds the calls of the message before, which this one must answer first of all."""

    def __init__(self) -> None:
        self.role = ""
        self.last: tuple[str, Any] = ("", None)
        self.waiting: dict[str, None] = {}
        self.used: set[str] = set()

    def message(self, place: str, message: dict[str, Any]) -> Iterator[Violation]:
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant"):
            yield Violation(place=place, rule="role", detail=f"the role {role!r} is unknown")
            return
        if not self.role and role == "assistant":
            yield Violation(place=place, rule="user-first", detail="the first message must be the user's")
        if role == self.role:
            yield Violation(place=place, rule="alternate", detail="roles must alternate")
        for name in message.keys() - {"role", "content"}:
            yield Violation(place=place, rule="unknown-field", detail=f"a message has no field {name!r}")
        self.role, self.last = role, (place, content)
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        yield from self.results(place, blocks)
        yield from self.blocks(place, blocks, role)

    def results(self, place: str, blocks: Any) -> Iterator[Violation]:
        """Every call of the message before is answered once, before anything else."""
        waiting, begun = dict(self.waiting), False
        for block in blocks if isinstance(blocks, list) else ():
            if not isinstance(block, dict) or block.get("type") != "tool_result":
                begun = True
                continue
            given = block.get("tool_use_id")
            if given not in waiting:
                detail = f"a result must answer a call of the message before; {given!r} does not"
                yield Violation(place=place, rule="result-without-call", detail=detail)
            elif begun:
                yield Violation(place=place, rule="results-first", detail="results stand before all other content")
            waiting.pop(given, None) if isinstance(given, str) else None
        if waiting:
            yield _unanswered(place, waiting)
        self.waiting = {}

    def blocks(self, place: str, blocks: Any, role: str) -> Iterator[Violation]:
        if blocks == []:
            yield Violation(place=place, rule="empty", detail="a message needs content")
        last = None
        for item in objects(blocks, f"{place}.content"):
            if isinstance(item, Violation):
                yield item
                continue
            last = item[1].get("type")
            yield from self.block(*item, role)
        if role == "assistant" and last in _THINKING:
            yield Violation(place=place, rule="thinking-alone", detail="the last block of a message cannot be thinking")

    def block(self, place: str, block: dict[str, Any], role: str) -> Iterator[Violation]:
        kind = block.get("type")
        if not isinstance(kind, str):
            yield Violation(place=place, rule="shape", detail="a block needs a type")
        elif role == "user" and kind in _ASSISTANT_ONLY:
            yield Violation(place=place, rule="part-type", detail=f"a user message cannot hold {kind} blocks")
        elif role == "assistant" and kind in ("image", "tool_result", "document"):
            yield Violation(place=place, rule="part-type", detail=f"an assistant message cannot hold {kind} blocks")
        elif kind == "text":
            yield from _text(place, block)
        elif kind == "image":
            yield from _image(place, block)
        elif kind == "thinking" and not (is_text(block.get("signature")) and isinstance(block.get("thinking"), str)):
            yield Violation(place=place, rule="thinking-signature", detail="thinking goes back with its signature only")
        elif kind == "redacted_thinking" and not is_text(block.get("data")):
            yield Violation(place=place, rule="thinking-signature", detail="redacted thinking goes back with its data")
        elif kind == "tool_use":
            yield from self.call(place, block)
        elif kind == "tool_result":
            yield from _result(place, block)

    def call(self, place: str, block: dict[str, Any]) -> Iterator[Violation]:
        given = block.get("id")
        if not isinstance(given, str) or not _ID.fullmatch(given):
            yield Violation(place=place, rule="call-id", detail=f"a call's id must match {_ID.pattern}")
        elif given in self.used:
            yield Violation(place=place, rule="call-id", detail=f"two calls have the id {given!r}")
        if isinstance(given, str):
            self.used.add(given)
            self.waiting[given] = None
        if not isinstance(block.get("name"), str) or not _NAME.fullmatch(block["name"]):
            yield Violation(place=place, rule="tool-name", detail=f"a tool's name must match {_NAME.pattern}")
        if not isinstance(block.get("input"), dict):
            yield Violation(place=place, rule="shape", detail="the input of a call must be an object")

    def finish(self) -> Iterator[Violation]:
        place, content = self.last
        if self.waiting:
            yield _unanswered(place, self.waiting)
        if self.role == "assistant" and isinstance(content, list | str) and content:
            block = content[-1] if isinstance(content, list) else {"type": "text", "text": content}
            text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
            if isinstance(text, str) and text != text.rstrip():
                yield Violation(place=place, rule="trailing-space", detail="the last text ends with blank space")


def _unanswered(place: str, waiting: dict[str, None]) -> Violation:
    detail = f"the next message must answer every call; missing: {', '.join(waiting)}"
    return Violation(place=place, rule="call-without-result", detail=detail)


def _image(place: str, block: dict[str, Any]) -> Iterator[Violation]:
    given = block.get("source")
    source: dict[str, Any] = given if isinstance(given, dict) else {}
    kind = source.get("type")
    if kind == "base64":
        if source.get("media_type") not in IMAGE_TYPES:
            yield Violation(
                place=place, rule="image", detail=f"images of type {source.get('media_type')} are not taken"
            )
        if not is_base64(source.get("data")):
            yield Violation(place=place, rule="image", detail="an image needs base64 data")
    elif kind == "url" and not str(source.get("url")).startswith(("http://", "https://")):
        yield Violation(place=place, rule="image", detail="an image's URL must be http or https")
    elif kind not in ("url", "file"):
        yield Violation(place=place, rule="image", detail="an image needs a source")


def _result(place: str, block: dict[str, Any]) -> Iterator[Violation]:
    content = block.get("content")
    if content is None or isinstance(content, str):
        return
    for item in objects(content, f"{place}.content"):
        if isinstance(item, Violation):
            yield item
        elif item[1].get("type") == "text":
            yield from _text(*item)
        elif item[1].get("type") == "image":
            yield from _image(*item)
        elif item[1].get("type") not in _USER - {"tool_result"}:
            yield Violation(
                place=item[0], rule="part-type", detail=f"a result cannot hold {item[1].get('type')!r} blocks"
            )


def _thinking_rules(body: dict[str, Any], messages: list[dict[str, Any]]) -> Iterator[Violation]:
    """With thinking on, the assistant message of an open tool loop begins with its thinking, and nothing is prefilled."""
    setting = body.get("thinking")
    if not isinstance(setting, dict) or setting.get("type") != "enabled":
        return
    index = next((at for at in reversed(range(len(messages))) if messages[at].get("role") == "assistant"), None)
    if index is None:
        return
    place, content = f"messages[{index}]", messages[index].get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    calls = any(block.get("type") == "tool_use" for block in blocks)
    if index == len(messages) - 1 and not calls:
        yield Violation(
            place=place, rule="prefill", detail="a reply cannot be begun for the model while thinking is on"
        )
    answered = index + 1 < len(messages) and _only_results(messages[index + 1])
    if calls and answered and blocks[0].get("type") not in _THINKING:
        detail = "while thinking is on, the calls of an open tool loop must follow their thinking"
        yield Violation(place=place, rule="thinking-lost", detail=detail)


def _only_results(message: dict[str, Any]) -> bool:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return bool(blocks) and all(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks)


def _breakpoints(body: dict[str, Any]) -> Iterator[Violation]:
    marked = [(place, block) for place, block in _all_blocks(body) if "cache_control" in block]
    if len(marked) > MAX_BREAKPOINTS:
        detail = f"at most {MAX_BREAKPOINTS} blocks may have cache_control, these are {len(marked)}"
        yield Violation(place="request", rule="breakpoints", detail=detail)
    for place, block in marked:
        empty = block.get("type") == "text" and not str(block.get("text", "")).strip()
        if block.get("type") in _THINKING or empty:
            yield Violation(place=place, rule="breakpoints", detail="thinking and empty text cannot have cache_control")


def _all_blocks(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    messages = body["messages"]
    contents = [(f"messages[{at}]", item.get("content")) for at, item in enumerate(messages) if isinstance(item, dict)]
    for place, blocks in (("system", body.get("system")), ("tools", body.get("tools")), *contents):
        for block in blocks if isinstance(blocks, list) else ():
            if isinstance(block, dict):
                yield place, block
