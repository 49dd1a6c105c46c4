"""Conversations as Markdown, to read: written, never read back.

A message's own Markdown stays, but nothing in it can pass for a turn of the conversation, and no HTML in it is live: a file
made from a stranger's transcript may be rendered anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, assert_never

from turnfold.messages.model import Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from turnfold.transcripts.document import Transcript
from turnfold.transcripts.telling import moment, part_title, paths, speaker

_OPENING: Final = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_CLOSING: Final = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*$")
_HEADING: Final = re.compile(r" {0,3}#{1,2}(?=\s|$)")
_UNDERLINE: Final = re.compile(r" {0,3}(?:=+|-+)\s*$")
_FENCE: Final = re.compile(r"`{3,}|~{3,}")
_LIVE: Final = re.compile(r"[<&]|\]\(|\]\[|!\[|^( {0,3})\[")


def encode(transcript: Transcript) -> Iterator[bytes]:
    """Yield the main path, then the branches, as UTF-8 Markdown."""
    yield f"# {_one_line(transcript.title or 'Conversation')}\n".encode("utf-8", "replace")
    for heading, messages in paths(transcript):
        if heading:
            yield f"\n# {_one_line(heading)}\n".encode("utf-8", "replace")
        for message in messages:
            yield _message(message).encode("utf-8", "replace")


def _message(message: Message) -> str:
    when = moment(message)
    head = f"\n## {_one_line(speaker(message))}{f' · {when}' if when else ''}\n"
    return head + "".join(f"\n{block}\n" for part in message.parts for block in _blocks(part))


def _blocks(part: Part) -> Iterator[str]:
    match part:
        case Text(text=text):
            yield quiet(text)
        case Reasoning(text=text):
            if text:
                yield f"**{part_title(part)}**"
                yield fenced(text)
        case ToolCall(arguments=arguments):
            yield f"**{_one_line(part_title(part))}**"
            yield fenced(arguments, "json")
        case ToolResult(content=content):
            yield f"**{_one_line(part_title(part))}**"
            for inner in content:
                yield fenced(inner.text) if isinstance(inner, Text) else f"*{_one_line(part_title(inner))}*"
        case Image() | Opaque():
            yield f"*{_one_line(part_title(part))}*"
        case _ as never:
            assert_never(never)


def fenced(text: str, language: str = "") -> str:
    """Return text as a code block whose fence is longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _one_line(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>&#|!~])", r"\\\1", " ".join(text.split()))


def quiet(text: str) -> str:
    """Return a message's Markdown with its headings lowered, HTML, links and images shown as text, and fences closed.

    Code blocks that begin at the margin stay untouched: only there is it certain that nothing in them is live.
    """
    out: list[str] = []
    fence = ""
    for line in text.splitlines():
        opened, closed = _OPENING.match(line), _CLOSING.match(line)
        if fence:
            out.append(line)
            fence = "" if closed and closed[1].startswith(fence) else fence
        elif opened:
            out.append(line)
            fence = opened[1] or opened[2]
        else:
            out.append(_quiet_line(line))
    return "\n".join([*out, *([fence] if fence else [])])


def _quiet_line(line: str) -> str:
    if _UNDERLINE.match(line) or _HEADING.match(line):
        line = f"\\{line.lstrip()}"
    # A fence inside a list or quotation ends where that ends: its other half would then open one over what follows.
    line = _FENCE.sub(lambda run: "".join(f"\\{mark}" for mark in run[0]), line)
    return _LIVE.sub(lambda match: "".join(f"\\{mark}" if mark in "<&[]!" else mark for mark in match[0]), line)
