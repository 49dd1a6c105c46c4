"""The letta-code local format and pi sessions: rows of a session tree, or bare messages.

Three layouts carry the same messages: session rows (`session`, `message`, `compaction`, ...), one bare message a line, and
`{"messages": [...]}` (one conversation for each). Fields that turnfold has no place for are kept under
`metadata["letta"]`, so that what was read can be written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from turnfold.messages.canonical import js_json
from turnfold.messages.model import Message
from turnfold.transcripts.document import (
    Entry,
    Event,
    Problem,
    Skipped,
    Start,
    SummaryBoundary,
    Transcript,
    opaque_row,
)
from turnfold.transcripts.letta_messages import (
    FORMAT,
    LETTA_ROLES,
    BadRow,
    decode_message,
    encode_message,
    namespace_of,
)
from turnfold.transcripts.naming import Namer
from turnfold.transcripts.reading import Row, epoch_ms, extras, keep, rows, text_of
from turnfold.transcripts.tree import Node, ancestors, last_message, unroll
from turnfold.transcripts.wire import KeptLayout, among, json_object, kept_of


def recognizes(value: Any) -> bool:
    """Whether one JSON value of a file is in this format: a session row, or a message that no other format writes so."""
    if isinstance(value, list):
        return any(recognizes(item) for item in value[:50])
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("messages"), list):
        return recognizes(value["messages"])
    if value.get("type") == "session" and "version" in value and "id" in value:
        return True
    if value.get("type") in ("message", "compaction") and "parentId" in value:
        return True
    return _is_bare(value)


def _is_bare(value: dict[str, Any]) -> bool:
    if value.get("role") == "toolResult" or "stopReason" in value:
        return True
    content = value.get("content")
    if isinstance(content, list) and among(value.get("role"), LETTA_ROLES):
        return any(
            isinstance(part, dict) and (part.get("type") == "toolCall" or "mimeType" in part) for part in content
        )
    return among(value.get("role"), LETTA_ROLES) and "content" in value and isinstance(value.get("timestamp"), int)


def events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Yield the conversations of a file. Bare messages stream; session rows are a tree and are held until its end."""
    session: _Session | None = None
    bare: _Bare | None = None
    for row in rows(chunks):
        if isinstance(row, Problem):
            yield row
        elif (messages := _listed(row.value)) is not None:
            yield from _Bare(messages, row.place).conversation(row.value)
        elif isinstance(row.value, dict) and "role" in row.value and "type" not in row.value:
            if bare is None:
                yield Start(format=FORMAT)
                bare = _Bare([], "")
            yield from bare.take(row.value, row.place)
        elif bare is not None:
            yield opaque_row(row.place, row.value)
        else:
            session = session or _Session()
            yield from session.take(row)
    if session is not None:
        yield from session.finish()


def _listed(value: Any) -> list[Any] | None:
    """Return the messages of a conversation that is given as one value."""
    messages = value.get("messages") if isinstance(value, dict) else value
    return messages if isinstance(messages, list) else None


class _Bare:
    """Bare messages of one conversation, in order."""

    def __init__(self, messages: list[Any], place: str) -> None:
        self.messages, self.place = messages, place
        self.namer = Namer(FORMAT)

    def conversation(self, document: Any) -> Iterator[Event]:
        """Yield a whole conversation given as a list; the document's other fields stay in its metadata."""
        rest = extras(document, frozenset({"messages"})) if isinstance(document, dict) else {}
        yield Start(format=FORMAT, metadata={"letta": {"layout": "messages", "fields": rest}})
        for number, value in enumerate(self.messages, 1):
            yield from self.take(value, f"{self.place}, message {number}")

    def take(self, value: Any, place: str) -> Iterator[Event]:
        try:
            message = decode_message(value)
        except BadRow as error:
            yield Problem(place=place, reason=str(error), cure="Repair the message or remove it.")
            return
        name = self.namer.name(message)
        if not message.id:
            message = _with_id(message, name)
        yield Entry(message=message, place=place)


class _Session:
    """Rows of a session file, held until the tree is whole. The last row of an id wins."""

    def __init__(self) -> None:
        self.header: dict[str, Any] = {}
        self.nodes: dict[str, Node] = {}
        self.kept: dict[str, str | None] = {}  # compaction row -> first kept row (None: nothing was kept)
        self.last: str | None = None
        self.namer = Namer(FORMAT)
        self.title: str | None = None

    def take(self, row: Row) -> Iterator[Event]:
        value = row.value
        match value:
            case {"type": "session"}:
                self.header = {key: keep(item) for key, item in value.items()}
            case {"type": "message", "message": dict() as message}:
                yield from self.take_message(value, message, row.place)
            case {"type": "compaction"}:
                yield from self.take_message(value, _summary_message(value), row.place)
            case {"id": str() as key, "parentId": _}:
                yield opaque_row(row.place, row.value, self.last)
                self.add(key, value, (), row.place)
            case _:
                yield opaque_row(row.place, row.value, self.last)

    def take_message(self, row: dict[str, Any], value: dict[str, Any], place: str) -> Iterator[Event]:
        try:
            message = decode_message(value)
        except BadRow as error:
            yield Problem(place=place, reason=str(error), cure="Repair the row or remove it.")
            return
        key = text_of(row.get("id")) or message.id or self.namer.name(message)
        if key in self.nodes:
            yield Skipped(kind="replaced by a later row of the same id")
        message = _with_row(message, key, row)
        self.add(key, row, (message,), place)
        if row.get("type") == "compaction":
            self.kept[key] = row.get("firstKeptEntryId") if isinstance(row.get("firstKeptEntryId"), str) else None

    def add(self, key: str, row: dict[str, Any], messages: tuple[Message, ...], place: str) -> None:
        """Keep a node where its id first stood; rows of layouts without parents follow each other."""
        parent = row.get("parentId", self.last)
        self.nodes[key] = Node(
            key=key, parent=parent if isinstance(parent, str) else None, messages=messages, place=place
        )
        self.last = key

    def finish(self) -> Iterator[Event]:
        conversation_id = text_of(self.header.get("id"))
        metadata = {"letta": {"layout": "session", "header": self.header}} if self.header else {}
        yield Start(format=FORMAT, conversation_id=conversation_id, metadata=metadata)
        yield from unroll(tuple(self.nodes.values()), self.last)
        for key, first_kept in self.kept.items():
            yield from self.boundary(key, first_kept)

    def boundary(self, key: str, first_kept: str | None) -> Iterator[SummaryBoundary]:
        """Yield where a summary's coverage ends, if the rows it names are on its own path."""
        path = ancestors(self.nodes, key)
        if first_kept is not None:
            if first_kept not in path:
                return
            path = path[path.index(first_kept) + 1 :]
        last = last_message(self.nodes, path)
        if last is not None:
            yield SummaryBoundary(summary_id=key, last_id=last)


def _summary_message(row: dict[str, Any]) -> dict[str, Any]:
    """Return the message that a compaction row stands for: its own, or one made from its summary."""
    inner = row.get("message")
    message = (
        dict(inner) if isinstance(inner, dict) and "role" in inner else {"role": "user", "content": row.get("summary")}
    )
    given = message.get("metadata")
    metadata = dict(given) if isinstance(given, dict) else {}
    metadata.setdefault("compaction", {"summary": row.get("summary"), "tokensBefore": row.get("tokensBefore")})
    return {**message, "metadata": metadata}


def _with_id(message: Message, name: str) -> Message:
    namespace = {**message.metadata.get("letta", {}), "no_id": True}
    return replace(message, id=name, metadata={**message.metadata, "letta": namespace})


def _with_row(message: Message, key: str, row: dict[str, Any]) -> Message:
    """Return the message under its row's id, with the row's own fields kept."""
    kept = {name: keep(item) for name, item in row.items() if name != "message"}
    namespace = {**message.metadata.get("letta", {}), "row": kept}
    if message.id and message.id != key:
        namespace["message_id"] = message.id
    created = message.created_at
    if created is None:
        created = epoch_ms(row.get("timestamp"))
        namespace["row_time"] = True
    return replace(message, id=key, created_at=created, metadata={**message.metadata, "letta": namespace})


# Rows out


def encode(transcript: Transcript) -> Iterator[bytes]:
    """Yield the main path in the layout it was read from; other transcripts give one bare message a line."""
    layout = kept_of(transcript.metadata, FORMAT, KeptLayout)
    if layout.get("layout") == "messages":
        body = [encode_message(message) for message in transcript.messages]
        yield _line({"messages": body, **layout.get("fields", {})})
        return
    if not is_session(transcript):
        yield from (_line(encode_message(message)) for message in transcript.messages)
        return
    yield _line(layout.get("header", {}))
    opaque: dict[str | None, list[str]] = {}
    for row in transcript.opaque:
        opaque.setdefault(row.after, []).append(row.payload)
    yield from _with_opaque(transcript, opaque)


def is_session(transcript: Transcript) -> bool:
    """Whether a transcript was read from session rows, and is written as such: with its tree."""
    return kept_of(transcript.metadata, FORMAT, KeptLayout).get("layout") == "session"


def _with_opaque(transcript: Transcript, opaque: dict[str | None, list[str]]) -> Iterator[bytes]:
    """Yield session rows, each opaque row after the row that it followed."""
    pending = list(opaque.pop(None, ()))
    branches = [message for branch in transcript.branches for message in branch.messages]
    for message in [None, *transcript.messages, *branches]:
        if message is not None:
            yield _line(_encode_row(message))
            pending = list(opaque.pop(message.id, ()))
        while pending:
            payload = pending.pop(0)
            yield payload.encode() + b"\n"
            key = (json_object(payload) or {}).get("id")
            pending.extend(opaque.pop(key, ()) if isinstance(key, str) else ())
    yield from (payload.encode() + b"\n" for rest in opaque.values() for payload in rest)


def _line(value: Any) -> bytes:
    return js_json(value).encode("utf-8", "replace") + b"\n"


def _encode_row(message: Message) -> dict[str, Any]:
    namespace = namespace_of(message)
    row = dict(namespace.get("row") or {"type": "message", "id": message.id})
    inner = encode_message(message)
    if "message_id" in namespace:
        inner["id"] = namespace["message_id"]
    else:
        inner.pop("id", None)
    if row.get("type") != "compaction":
        row["message"] = inner
    return row
