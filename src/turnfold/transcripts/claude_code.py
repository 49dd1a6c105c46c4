"""Claude Code sessions: rows of a tree, read only.

A reply is spread over rows with one `message.id`, and parallel results hang under different rows of it: both are put
together again, since walking the parents alone would lose results. A compaction's summary stands where it was made, and the
rows that it preserved stay where they were said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec.structs import replace

from turnfold.messages.model import Message, ToolCall
from turnfold.transcripts.anthropic import decode_usage
from turnfold.transcripts.anthropic_messages import BadMessage, split_message
from turnfold.transcripts.document import Event, Problem, Skipped, Start, SummaryBoundary, Titled, opaque_row
from turnfold.transcripts.naming import Namer
from turnfold.transcripts.reading import Row, epoch_ms, keep, rows, text_of
from turnfold.transcripts.tree import Node, ancestors, last_message, unroll
from turnfold.transcripts.wire import among

FORMAT: Final = "claude_code"
_KEPT: Final = (
    "isMeta",
    "isSidechain",
    "isApiErrorMessage",
    "isCompactSummary",
    "requestId",
    "cwd",
    "gitBranch",
    "agentId",
)
_SESSION: Final = ("cwd", "version", "gitBranch", "userType")
_OWN_TYPES: Final = frozenset({"user", "assistant", "system", "summary", "file-history-snapshot", "queue-operation"})


def recognizes(value: Any) -> bool:
    """Whether one row of a file is in this format."""
    if not isinstance(value, dict) or not among(value.get("type"), _OWN_TYPES) or "parentId" in value:
        return False
    if value["type"] == "summary":
        return "leafUuid" in value
    return "sessionId" in value or "parentUuid" in value or value["type"] == "file-history-snapshot"


def events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Yield the conversation of a file. The tree is held until the file ends."""
    session = _Session()
    for row in rows(chunks):
        if isinstance(row, Problem):
            yield row
        else:
            yield from session.take(row)
    yield from session.finish()


class _Session:
    """The rows of a file. `alias` leads from every row's uuid to the node that holds it."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.alias: dict[str, str] = {}
        self.replies: dict[str, str] = {}  # message.id -> node, while the reply may still go on
        self.results: dict[str, str] = {}  # node of a reply -> node of its results
        self.side: set[str] = set()  # nodes of subagents
        self.compactions: list[_Compaction] = []
        self.last: str | None = None
        self.linked = False
        self.first: dict[str, Any] = {}
        self.title: str | None = None
        self.namer = Namer(FORMAT)

    # Rows

    def take(self, row: Row) -> Iterator[Event]:
        value = row.value
        kind = value.get("type") if isinstance(value, dict) else None
        if kind in ("user", "assistant"):
            self.first = self.first or value
            yield from self.take_message(value, row.place)
        elif kind == "summary" and text_of(value.get("summary")):
            self.title = value["summary"]
        else:
            if kind == "system" and value.get("subtype") == "compact_boundary":
                self.compactions.append(_Compaction(value))
            yield opaque_row(row.place, value, self.last)
            if kind is not None and text_of(value.get("uuid")):
                self.add(value["uuid"], self.parent_of(value), (), row.place, value)

    def take_message(self, row: dict[str, Any], place: str) -> Iterator[Event]:
        try:
            found = [_message(row, message) for message in split_message(row.get("message"))]
        except BadMessage as error:
            yield Problem(place=place, reason=str(error), cure="Repair the row or remove it.")
            return
        uuid = text_of(row.get("uuid"))
        if uuid and uuid in self.alias:
            if _parts(self.nodes[self.alias[uuid]].messages) >= _parts(found):
                yield Skipped(kind="the same row again")
                return
            reason = f"another row has the uuid {uuid!r}"
            yield Problem(place=place, reason=reason, cure="It was kept under a derived id.")
            uuid = None
        named = [self.namer.name(message) for message in found]
        uuid = uuid or named[0]
        numbered = [replace(message, id=uuid if n == 1 else f"{uuid}/{n}") for n, message in enumerate(found, 1)]
        if row["type"] == "assistant":
            self.take_reply(row, uuid, numbered, place)
        else:
            self.take_user(row, uuid, tuple(numbered), place)

    def take_reply(self, row: dict[str, Any], uuid: str, found: list[Message], place: str) -> None:
        """Start a reply, or add to the one that the row goes on with."""
        inner = row["message"].get("id")
        key = self.replies.get(inner) if isinstance(inner, str) else None
        if key is None:
            self.add(uuid, self.parent_of(row), tuple(found), place, row)
            if isinstance(inner, str):
                self.replies[inner] = uuid
            return
        node = self.nodes[key]
        self.nodes[key] = replace(node, messages=(_joined(node.messages[0], found[0]), *node.messages[1:]))
        self.alias[uuid] = key

    def take_user(self, row: dict[str, Any], uuid: str, found: tuple[Message, ...], place: str) -> None:
        """Add a user's row; results join the other results of the same reply."""
        parent = self.parent_of(row)
        if all(message.role == "tool" for message in found) and parent is not None and self.is_reply(parent):
            key = self.results.get(parent)
            if key is not None and not _call_ids(found) & _call_ids(self.nodes[key].messages):
                node = self.nodes[key]
                self.nodes[key] = replace(node, messages=(*node.messages, *found))
                self.alias[uuid] = key
                return
            self.results.setdefault(parent, uuid)
        elif row.get("isSidechain") is not True:
            self.replies = {}  # a reply does not go on after the user spoke
        if row.get("isCompactSummary") is True and self.compactions:
            self.compactions[-1].summary = uuid
        self.add(uuid, parent, found, place, row)

    def is_reply(self, key: str) -> bool:
        messages = self.nodes[key].messages
        return bool(messages) and messages[0].role == "assistant"

    # The tree

    def add(self, uuid: str, parent: str | None, found: tuple[Message, ...], place: str, row: dict[str, Any]) -> None:
        if uuid in self.nodes:
            return
        self.nodes[uuid] = Node(key=uuid, parent=parent, messages=found, place=place)
        self.alias[uuid] = uuid
        if row.get("isSidechain") is True:
            self.side.add(uuid)
        else:
            self.last = uuid

    def parent_of(self, row: dict[str, Any]) -> str | None:
        """Return the node that a row follows.

        A parent that was never written is replaced by the row before (sessions with such gaps are common), and so is the
        parent of a compaction's boundary that names none.
        """
        given = row.get("parentUuid") or row.get("logicalParentUuid")
        if isinstance(given, str):
            self.linked = self.linked or given in self.alias
            moved = next((c.summary for c in reversed(self.compactions) if c.summary and c.tail == given), None)
            given = moved or given
            if given in self.alias:
                return self.alias[given]
            return None if row.get("isSidechain") is True else self.last
        restarts = row.get("isCompactSummary") is True or row.get("subtype") == "compact_boundary"
        return self.last if restarts else None

    def finish(self) -> Iterator[Event]:
        if not self.linked:
            self.link_in_file_order()
        metadata = {key: keep(self.first[key]) for key in _SESSION if key in self.first}
        yield Start(
            format=FORMAT,
            conversation_id=text_of(self.first.get("sessionId")),
            metadata={FORMAT: metadata} if metadata else {},
        )
        if self.title:
            yield Titled(title=self.title)
        yield from unroll(tuple(self.nodes.values()), self.last)
        for compaction in self.compactions:
            yield from self.boundary(compaction)

    def link_in_file_order(self) -> None:
        """Chain the rows of a file in which no row names another one."""
        before: str | None = None
        for key, node in self.nodes.items():
            if key not in self.side:
                self.nodes[key] = replace(node, parent=before)
                before = key

    def boundary(self, compaction: _Compaction) -> Iterator[SummaryBoundary]:
        """Yield what a summary covers, if the rows before it are in this file."""
        if compaction.summary is None or compaction.logical_parent not in self.alias:
            return
        path = ancestors(self.nodes, compaction.summary)
        start = self.alias[compaction.logical_parent]
        path = path[path.index(start) :] if start in path else []
        preserved = [index for index, key in enumerate(path) if compaction.preserves(key)]
        last = last_message(self.nodes, path[max(preserved) + 1 :] if preserved else path)
        if last is not None and (preserved or not compaction.preserved):
            yield SummaryBoundary(summary_id=compaction.summary, last_id=last)


class _Compaction:
    """A compaction's boundary row: what came before it, which rows it preserved, and the summary that followed."""

    def __init__(self, row: dict[str, Any]) -> None:
        given = row.get("logicalParentUuid")
        self.logical_parent = given if isinstance(given, str) else ""
        metadata = row.get("compactMetadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        segment = metadata.get("preservedSegment")
        segment = segment if isinstance(segment, dict) else {}
        listed = metadata.get("preservedMessages")
        uuids = listed.get("uuids") if isinstance(listed, dict) else None
        uuids = [uuid for uuid in uuids if isinstance(uuid, str)] if isinstance(uuids, list) else []
        self.tail = text_of(segment.get("tailUuid")) or (uuids[-1] if uuids else None)
        head = text_of(segment.get("headUuid"))
        self.preserved = frozenset([*uuids, *([head] if head else [])])
        self.summary: str | None = None

    def preserves(self, key: str) -> bool:
        return key in self.preserved


def _message(row: dict[str, Any], message: Message) -> Message:
    """Return a message with what its row says of it."""
    inner = row["message"]
    own = {key: keep(row[key]) for key in _KEPT if row.get(key) not in (None, False)}
    if message.role == "assistant" and text_of(inner.get("id")):
        own["message_id"] = inner["id"]
    metadata: dict[str, Any] = {key: value for key, value in message.metadata.items() if key != "anthropic"}
    kept = {key: value for key, value in message.metadata.get("anthropic", {}).items() if key in ("parts", "form")}
    if kept and message.role == "tool":
        metadata["anthropic"] = kept
    is_summary = row.get("isCompactSummary") is True and message.role == "user"
    if is_summary:
        metadata["compaction"] = {"summary": message.text}
    changed = replace(
        message,
        kind="summary" if is_summary else "message",
        created_at=epoch_ms(row.get("timestamp")),
        metadata={**metadata, FORMAT: own} if own else metadata,
    )
    if message.role != "assistant":
        return changed
    stopped = "error" if row.get("isApiErrorMessage") is True else text_of(inner.get("stop_reason"))
    return replace(
        changed, usage=decode_usage(inner.get("usage")), stop_reason=stopped, model=text_of(inner.get("model"))
    )


def _joined(first: Message, more: Message) -> Message:
    """Return a reply with another of its rows; the later row knows better how it ended and what it cost."""
    fresh = tuple(part for part in more.parts if part not in first.parts)
    return replace(
        first,
        parts=(*first.parts, *fresh),
        usage=more.usage or first.usage,
        stop_reason=more.stop_reason or first.stop_reason,
    )


def _parts(messages: Iterable[Message]) -> frozenset[str]:
    return frozenset(repr(part) for message in messages for part in message.parts)


def _call_ids(messages: Iterable[Message]) -> set[str]:
    calls = {part.id for message in messages for part in message.parts if isinstance(part, ToolCall)}
    return calls | {result.call_id for message in messages for result in message.results}
