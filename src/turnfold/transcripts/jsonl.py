"""turnfold's own format: JSON Lines that hold everything a conversation has, and nothing else.

    {"type":"conversation","format":"turnfold","version":1,...}   starts a conversation; a file may hold several
    {"type":"message","message":{...}}                            the next message on the main branch, or on "branch"
    {"type":"branch","name":...,"parent":...,"after":...}         a branch, before its messages
    {"type":"boundary",...}  {"type":"opaque",...}                what a summary covers; rows of the original format

Written by one encoder in one order, so equal transcripts give equal bytes.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any, Final

import msgspec

from turnfold.errors import TranscriptError
from turnfold.messages.log import MAIN
from turnfold.messages.model import Message, Tool, ToolCall, ToolResult
from turnfold.transcripts.document import (
    Entry,
    Event,
    Forked,
    OpaqueRow,
    Problem,
    Start,
    SummaryBoundary,
    Transcript,
    opaque_row,
)
from turnfold.transcripts.reading import MAX_DEPTH, BrokenJson, check_start, keep, lines, parse, peek

FORMAT: Final = "turnfold"
VERSION: Final = 1
"""Raised when an older release could misread a newer file."""


class _Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """A row of a file."""


class _Conversation(_Row, frozen=True, kw_only=True, omit_defaults=True, tag="conversation"):
    format: str
    version: int
    id: str | None = None
    source: str | None = None
    title: str | None = None
    metadata: dict[str, Any] = {}
    tools: tuple[Tool, ...] = ()


class _Message(_Row, frozen=True, kw_only=True, omit_defaults=True, tag="message"):
    message: Message
    branch: str = MAIN


class _Branch(_Row, frozen=True, kw_only=True, omit_defaults=True, tag="branch"):
    name: str
    parent: str = MAIN
    after: str | None = None


class _Boundary(_Row, frozen=True, kw_only=True, omit_defaults=True, tag="boundary"):
    summary_id: str
    last_id: str
    branch: str = MAIN


class _Opaque(_Row, frozen=True, kw_only=True, omit_defaults=True, tag="opaque"):
    kind: str
    payload: str
    after: str | None = None
    place: str = ""


_AnyRow = _Conversation | _Message | _Branch | _Boundary | _Opaque
_DECODER: Final = msgspec.json.Decoder(_AnyRow)


class _Holder(msgspec.Struct, frozen=True):
    """Lets msgspec remember how to read a row: it analyses a bare union anew at every `convert`, ten times the cost."""

    row: _AnyRow


_TAGS: Final = frozenset({"conversation", "message", "branch", "boundary", "opaque"})


def recognizes(value: Any) -> bool:
    """Whether one JSON value of a file is in this format."""
    if not isinstance(value, dict):
        return False
    message = value.get("message")
    if value.get("type") == "message" and isinstance(message, dict) and "parentId" not in value:
        return {"id", "role"} <= message.keys() and "content" not in message
    return value.get("type") == "conversation" and value.get("format") == FORMAT


def events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Yield the conversations of a file, one row at a time. Memory: the longest line."""
    head, chunks = peek(chunks)
    check_start(head)
    started, branches = False, _Branches()
    for number, line in lines(chunks):
        place = f"line {number}"
        if started and (entry := _plain_entry(line, place, branches.begun)):
            yield entry
            continue
        for event in _events(place, line):
            if not started and not isinstance(event, Start | Problem):
                yield Start(format=FORMAT)
            started = started or not isinstance(event, Problem)
            yield from branches.checked(event, place)


def _plain_entry(line: bytes | None, place: str, begun: Container[str]) -> Entry | None:
    """Return the sound message of a branch that was begun: nearly every line of a large file. None for any other line."""
    row = None if line is None else _decoded(line)
    if type(row) is not _Message or row.branch not in begun or misshapen(row.message):
        return None
    return Entry(message=row.message, branch=row.branch, place=place)


class _Branches:
    """The branches of a conversation that were begun so far. A row that names another one is kept, and its branch begun."""

    def __init__(self) -> None:
        self.begun = {MAIN}

    def checked(self, event: Event, place: str) -> Iterator[Event]:
        match event:
            case Start():
                self.begun = {MAIN}
            case Entry(branch=branch) if branch not in self.begun:
                yield from self.begin(Forked(name=branch), f"branch {branch!r} was never begun", place)
            case Forked(name=name) if name in self.begun:
                yield Problem(place=place, reason=f"branch {name!r} was begun before", cure="Give it another name.")
                return
            case Forked(parent=parent, name=name):
                if parent not in self.begun:
                    yield Problem(
                        place=place,
                        reason=f"branch {parent!r} was never begun",
                        cure="Put its row first.",
                        level="note",
                    )
                self.begun.add(name)
            case _:
                pass
        yield event

    def begin(self, fork: Forked, reason: str, place: str) -> Iterator[Event]:
        self.begun.add(fork.name)
        yield Problem(
            place=place, reason=f"{reason}; it was taken as one that shares nothing", cure="Put its row first."
        )
        yield fork


def _events(place: str, line: bytes | None) -> Iterator[Event]:
    try:
        yield _event(_row(line), place)
    except BrokenJson as error:
        yield Problem(place=place, reason=error.reason, cure="Repair the line or remove it.")
    except _MisfitError as error:
        yield _misfit(place, error.value, error.reason)


class _MisfitError(Exception):
    """A line is JSON, `value`, but no row of ours, for `reason`."""

    def __init__(self, value: Any, reason: str) -> None:
        super().__init__(reason)
        self.value = value
        self.reason = reason


def _decoded(line: bytes) -> _AnyRow | None:
    """Return a row as it stands, None for one that needs the tolerant reader."""
    if line.count(b"[") + line.count(b"{") > MAX_DEPTH:
        return None
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None


def _row(line: bytes | None) -> _AnyRow:
    if line is None:
        raise BrokenJson("the line is too long")
    row = _decoded(line)
    if row is not None:
        return row
    value, _ = parse(line)  # says better what is wrong, and takes what can be repaired
    try:
        return msgspec.convert({"row": value}, _Holder).row
    except msgspec.ValidationError as error:
        raise _MisfitError(value, str(error).replace("$.row", "$")) from None


def _misfit(place: str, value: Any, reason: str) -> Event:
    """Return what a row that is JSON but no row of ours gives: kept when its type is unknown, else a problem."""
    kind = value.get("type") if isinstance(value, dict) else None
    if isinstance(kind, str) and kind not in _TAGS:
        return opaque_row(place, value)
    return Problem(place=place, reason=_plain(reason), cure="Repair the line or remove it.")


def _plain(reason: str) -> str:
    if reason.startswith("Invalid enum value") and ".role" in reason:
        return f"the role is unknown ({reason})"
    return f"it is not a row of a conversation ({reason})"


def _event(row: _AnyRow, place: str) -> Event:
    match row:
        case _Conversation():
            return _start(row, place)
        case _Message(message=message, branch=branch):
            reason = misshapen(message)
            if reason:
                return Problem(place=place, reason=reason, cure="Repair the message or remove it.")
            return Entry(message=message, branch=branch, place=place)
        case _Branch(name=name, parent=parent, after=after):
            return Forked(name=name, parent=parent, after=after)
        case _Boundary(summary_id=summary_id, last_id=last_id, branch=branch):
            return SummaryBoundary(summary_id=summary_id, last_id=last_id, branch=branch)
        case _Opaque():
            return OpaqueRow(place=row.place or place, kind=row.kind, payload=row.payload, after=row.after)


def _start(row: _Conversation, place: str) -> Start:
    if row.format != FORMAT or row.version > VERSION:
        raise TranscriptError(
            place,
            f"it is {row.format} version {row.version}; this release reads {FORMAT} up to version {VERSION}",
            "Upgrade turnfold to read it.",
        )
    source = row.source or FORMAT
    return Start(format=source, conversation_id=row.id, title=row.title, metadata=row.metadata, tools=row.tools)


def misshapen(message: Message) -> str | None:
    """Return what breaks the rules of a message, or None: an id, and tool results in tool messages alone."""
    if not message.id:
        return "the message has no id"
    kinds = [type(part) for part in message.parts]
    results = kinds.count(ToolResult)
    if message.role == "tool" and (results != len(kinds) or not results):
        return "a tool message holds something else than tool results"
    if message.role != "tool" and results:
        return f"a {message.role} message holds a tool result"
    if message.role != "assistant" and ToolCall in kinds:
        return f"a {message.role} message holds a tool call"
    return None


def encode(transcript: Transcript) -> Iterator[bytes]:
    """Yield everything that the transcript holds, one row a piece."""
    yield _line(
        _Conversation(
            format=FORMAT,
            version=VERSION,
            id=transcript.conversation_id,
            source=transcript.format if transcript.format != FORMAT else None,
            title=transcript.title,
            metadata=transcript.metadata,
            tools=transcript.tools,
        )
    )
    for message in transcript.messages:
        yield _line(_Message(message=message))
    for branch in transcript.branches:
        yield _line(_Branch(name=branch.name, parent=branch.parent, after=branch.after))
        for message in branch.messages:
            yield _line(_Message(message=message, branch=branch.name))
    for boundary in transcript.boundaries:
        yield _line(_Boundary(summary_id=boundary.summary_id, last_id=boundary.last_id, branch=boundary.branch))
    for row in transcript.opaque:
        yield _line(_Opaque(kind=row.kind, payload=row.payload, after=row.after, place=row.place))


def _line(row: _AnyRow) -> bytes:
    try:
        return msgspec.json.encode(row) + b"\n"
    except (UnicodeEncodeError, OverflowError):
        return msgspec.json.encode(keep(msgspec.to_builtins(row))) + b"\n"
