"""The conversation as role lines for a summarizer: `[role] text -> name(arguments)`, one for each message or result.

Content cannot forge such a line: a line inside a message that looks like one gets a backslash (SPEC §6). Where no line
looks like one, the lines equal those of the agent seed.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

import msgspec

from turnfold.core.envelope import raw_summary
from turnfold.core.truncation import utf16_head, utf16_length, utf16_slice
from turnfold.messages.canonical import js_json
from turnfold.messages.model import Image, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult

TOOL_RESULT_CHARS = 2_000
"""Characters of a tool result that are shown (SPEC §6)."""

_ROLE_WORDS = ("system", "user", "assistant", "tool", "developer", "human", "ai", "function")
_CHINESE_ROLE_WORDS = ("用户", "使用者", "助手", "助理", "系统", "系統", "工具", "开发者")
_NEWLINES = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_INVISIBLE = "\\s\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff"
_OPENS, _CLOSES = "[［【〔〖⟦", "]］】〕〗⟧"
_BRACKETED_START = re.compile(
    rf"(?<=[{_NEWLINES}])((?:(?![{_NEWLINES}])[{_INVISIBLE}])*+)(?=\\*+[{re.escape(_OPENS)}]"
    rf"([^{_NEWLINES}{re.escape(_OPENS + _CLOSES)}]{{1,80}})[{re.escape(_CLOSES)}])"
)
_WORD = re.compile(r"[^\W\d_]+")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One role line: what message `message_id` said as `role`."""

    message_id: str
    role: Role
    body: str

    @property
    def text(self) -> str:
        """The line as it stands in a transcript."""
        return f"[{self.role}] {self.body}"


def transcript_lines(
    messages: Iterable[Message], *, tool_result_chars: int = TOOL_RESULT_CHARS, exact: bool = False
) -> tuple[Line, ...]:
    """Return the role lines of some messages; what says nothing has none.

    `tool_result_chars` (UTF-16 code units) bounds a tool result. `exact` leaves forged lines as they are and may cut a
    character in half, as the seed does: for comparing with it alone, never for a model.
    """
    return tuple(line for message in messages for line in _lines(message, tool_result_chars, exact=exact))


def _lines(message: Message, tool_result_chars: int, *, exact: bool) -> Iterator[Line]:
    for body in _bodies(message, tool_result_chars, exact=exact):
        if body:
            shown = body if exact else escape_role_lines(body)
            yield Line(message_id=message.id, role=message.role, body=shown)


def _bodies(message: Message, tool_result_chars: int, *, exact: bool) -> Iterator[str]:
    summary = raw_summary(message)
    if summary is not None:
        yield summary
        return
    spoken = [part for part in message.parts if not isinstance(part, ToolResult)]
    yield _with_calls(_named(_spoken(spoken), message), message.calls)
    for result in message.results:
        yield clip(_spoken(result.content, between="\n"), tool_result_chars, exact=exact)


def _named(text: str, message: Message) -> str:
    """Text with its speaker's name before it, where the format told one: in a group chat the role says too little."""
    name = message.metadata.get("name")
    return f"{name}: {text}" if text and isinstance(name, str) and name and message.role != "tool" else text


def _spoken(parts: Sequence[Part], between: str = "\n\n") -> str:
    """Text and reasoning in order, then how many images there are. A tool's texts are lines, other texts paragraphs."""
    texts = [text for part in parts if (text := _said(part)) is not None]
    images = sum(isinstance(part, Image) for part in parts)
    shown = "[Image omitted]" if images == 1 else f"[{images} images omitted]" if images else ""
    return " ".join(piece for piece in (between.join(texts), shown) if piece)


def _said(part: Part) -> str | None:
    match part:
        case Text(text=text):
            return text
        case Reasoning(text=text, payload=payload):
            return text if text or payload is None else None  # a sealed payload says nothing to another model
        case Opaque(source=source):
            return f"[{source} content omitted]"
        case Image() | ToolCall() | ToolResult():
            return None
        case _ as never:
            assert_never(never)


def _with_calls(text: str, calls: Sequence[ToolCall]) -> str:
    if not calls:
        return text
    shown = "-> " + ", ".join(f"{call.name}({_arguments(call.arguments)})" for call in calls)
    return f"{text} {shown}" if text else shown


def _arguments(arguments: str) -> str:
    """Arguments as compact JSON, in the order written; what is not JSON, or a JSON text, as it is; none as `{}`."""
    try:
        value = json.loads(arguments) if arguments.strip() else None
        return value if isinstance(value, str) else "{}" if value is None else js_json(value)
    except (ValueError, RecursionError):
        return arguments


def clip(text: str, max_chars: int, *, exact: bool = False) -> str:
    """Return the first `max_chars` characters (UTF-16 code units) of a text, and how many were cut."""
    length = utf16_length(text)
    if length <= max_chars:
        return text
    shown = utf16_slice(text, max_chars) if exact else utf16_head(text, max_chars)
    return f"{shown}... [truncated {length - max_chars} chars]"


def escape_role_lines(text: str) -> str:
    r"""Return `text` with a backslash before every line that looks like a role line; the first line follows a real one.

    A line that already has backslashes there gets one more, so nothing is ambiguous.
    """
    return _BRACKETED_START.sub(_escaped, text) if any(mark in text for mark in _OPENS) else text


def _escaped(match: re.Match[str]) -> str:
    return match[1] + "\\" if _names_a_role(match[2]) else match[0]


def _names_a_role(label: str) -> bool:
    """Whether a bracketed label reads as a role, whatever its case, width and invisible characters."""
    visible = "".join(char for char in unicodedata.normalize("NFKC", label) if unicodedata.category(char) != "Cf")
    cleaned = visible.strip().casefold()
    if cleaned.startswith(_CHINESE_ROLE_WORDS):
        return True
    word = _WORD.match(cleaned)
    return word is not None and word[0] in _ROLE_WORDS and not cleaned[word.end() :].startswith(".")
