"""Codex rollouts: the session log of Codex CLI, read only.

Response items are the conversation; event rows say the same again and are read for tokens and rollbacks alone. A rollback leaves
the turns that it took back on a branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec.structs import replace

from turnfold.messages.canonical import js_json
from turnfold.messages.model import Message, Text, Usage
from turnfold.transcripts.document import Event, Problem, Skipped, Start, SummaryBoundary, opaque_row
from turnfold.transcripts.naming import Namer
from turnfold.transcripts.openai_responses_items import ITEM_TYPES, BadItem, ItemReader
from turnfold.transcripts.reading import Row, count_of, epoch_ms, keep, rows, text_of
from turnfold.transcripts.tree import Node, ancestors, last_message, unroll
from turnfold.transcripts.wire import among

FORMAT: Final = "codex"
_ROWS: Final = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
_MODEL_CALLS: Final = frozenset({"web_search_call", "image_generation_call"})
_SPOKEN: Final = {"user_message": "user", "agent_message": "assistant"}
_CONTEXT: Final = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<turn_aborted>")


def recognizes(value: Any) -> bool:
    """Whether one row of a file is in this format."""
    if not isinstance(value, dict):
        return False
    return among(value.get("type"), _ROWS) and isinstance(value.get("payload"), dict)


def events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Yield the conversation of a file; it is held until the file ends, since a rollback may take turns back."""
    session = _Session()
    for row in rows(chunks):
        if isinstance(row, Problem):
            yield row
        else:
            yield from session.take(row)
    yield from session.finish()


class _Session:
    """The rows of a rollout. `tip` is the node that the next message follows."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.tip: str | None = None
        self.reader, self.namer = ItemReader(), Namer(FORMAT)
        self.pending: tuple[str, int | None] = ("", None)  # place and time of the reply being gathered
        self.usage: Usage | None = None
        self.model: str | None = None
        self.meta: dict[str, Any] = {}
        self.boundaries: list[SummaryBoundary] = []
        self.spoken: list[tuple[str, Message]] = []

    def take(self, row: Row) -> Iterator[Event]:
        value = row.value if isinstance(row.value, dict) else {}
        payload = value.get("payload")
        time = epoch_ms(value.get("timestamp"))
        match (value.get("type"), payload):
            case ("response_item", dict()):
                yield from self.item(payload, row.place, time)
            case ("event_msg", dict()):
                yield from self.event(payload, row.place, time)
            case ("turn_context", dict()):
                self.model = text_of(payload.get("model")) or self.model
                yield Skipped(kind="turn context")
            case ("session_meta", dict()):
                self.meta = self.meta or {key: keep(item) for key, item in payload.items()}
            case ("compacted", dict()):
                yield from self.compacted(payload, row.place, time)
            case (str() as kind, None) if kind in ITEM_TYPES:  # releases before the rows had payloads
                yield from self.item(value, row.place, time)
            case (None, None) if not self.meta and {"id", "timestamp"} <= value.keys():
                self.meta = {key: keep(item) for key, item in value.items()}
            case _:
                yield opaque_row(row.place, row.value, self.tip)

    def item(self, item: dict[str, Any], place: str, time: int | None) -> Iterator[Event]:
        item = _shell_call(item)
        kind = item.get("type")
        if not among(kind, ITEM_TYPES | _MODEL_CALLS):
            yield opaque_row(place, item, self.tip)
            return
        try:
            found = list(self.reader.take(item))
        except BadItem as error:
            yield Problem(place=place, reason=str(error), cure="Repair the row or remove it.")
            return
        for message in found:
            if message.role == "assistant":
                self.reply(message)
            else:
                self.add(replace(message, created_at=time), place)
        if not self.pending[0] and not found:
            self.pending = (place, time)

    def reply(self, message: Message) -> None:
        """Add the reply gathered so far."""
        place, time = self.pending
        usage, self.usage, self.pending = self.usage, None, ("", None)
        self.add(replace(message, created_at=time, usage=usage, model=self.model), place)

    def flush(self) -> None:
        for message in self.reader.flush():
            self.reply(message)

    def add(self, message: Message, place: str) -> None:
        name = self.namer.name(message)
        self.nodes[name] = Node(key=name, parent=self.tip, messages=(replace(message, id=name),), place=place)
        self.tip = name

    def event(self, payload: dict[str, Any], place: str, time: int | None) -> Iterator[Event]:
        kind = payload.get("type")
        if kind == "thread_rolled_back":
            self.flush()
            self.roll_back(count_of(payload.get("num_turns")))
            return
        if kind == "token_count":
            info = payload.get("info")
            self.usage = _usage(info.get("last_token_usage") if isinstance(info, dict) else None) or self.usage
        role, text = _SPOKEN.get(str(kind)), payload.get("message")
        if role and isinstance(text, str):
            said = Message(
                id="", role="user" if role == "user" else "assistant", parts=(Text(text=text),), created_at=time
            )
            self.spoken.append((place, said))
        yield Skipped(kind="event that repeats a response item" if role else "event")

    def roll_back(self, turns: int) -> None:
        """Step back before the last `turns` messages of the user."""
        while turns > 0 and self.tip is not None:
            message = self.nodes[self.tip].messages[0]
            if message.role == "user" and message.kind == "message" and not message.text.startswith(_CONTEXT):
                turns -= 1
            self.tip = self.nodes[self.tip].parent

    def compacted(self, payload: dict[str, Any], place: str, time: int | None) -> Iterator[Event]:
        """Add a summary; it covers everything before it, which is in this file."""
        self.flush()
        summary = text_of(payload.get("message"))
        if summary is None:
            yield opaque_row(place, payload, self.tip, "compacted")
            return
        covered = [self.tip, *ancestors(self.nodes, self.tip)] if self.tip else []
        record = {"compaction": {"summary": summary}}
        text = (Text(text=summary),)
        self.add(Message(id="", role="user", kind="summary", parts=text, created_at=time, metadata=record), place)
        last = last_message(self.nodes, covered)
        if last is not None and self.tip is not None:
            self.boundaries.append(SummaryBoundary(summary_id=self.tip, last_id=last))

    def finish(self) -> Iterator[Event]:
        self.flush()
        if not self.nodes:  # a log of events alone
            for place, message in self.spoken:
                self.add(message, place)
        metadata = {FORMAT: self.meta} if self.meta else {}
        yield Start(format=FORMAT, conversation_id=text_of(self.meta.get("id")), metadata=metadata)
        yield from unroll(tuple(self.nodes.values()), self.tip)
        yield from self.boundaries


def _shell_call(item: dict[str, Any]) -> dict[str, Any]:
    """Return a local shell call as the function call that its output answers to."""
    if item.get("type") != "local_shell_call" or not isinstance(item.get("call_id"), str):
        return item
    arguments = js_json(item.get("action"))
    return {"type": "function_call", "call_id": item["call_id"], "name": "local_shell", "arguments": arguments}


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    given, cached = count_of(value.get("input_tokens")), count_of(value.get("cached_input_tokens"))
    return Usage(
        input=max(0, given - cached),
        output=count_of(value.get("output_tokens")),
        cache_read=min(cached, given),
        total=count_of(value.get("total_tokens")),
    )
