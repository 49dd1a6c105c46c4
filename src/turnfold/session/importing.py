"""Brings decoded transcripts into a store: messages, branches, and foreign summaries that can be resolved.

Ids in a transcript are stable, so importing a file again adds nothing, a longer file adds its new messages, and an import that
was interrupted goes on where it stopped. Where each message goes is decided in `merging`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, assert_never

import msgspec
from msgspec.structs import replace

from turnfold.core.policy import Policy
from turnfold.errors import TranscriptError
from turnfold.messages.log import MAIN, ConversationKey
from turnfold.messages.model import Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from turnfold.ports import Clock, Store
from turnfold.session.adopting import adopt_summary
from turnfold.session.merging import Merge
from turnfold.transcripts.document import (
    MAX_PROBLEMS,
    Entry,
    Event,
    Forked,
    OpaqueRow,
    Problem,
    Skipped,
    Start,
    SummaryBoundary,
    Titled,
)
from turnfold.transcripts.naming import short_hash

BATCH = 2000
"""Messages in one transaction."""

BATCH_CHARACTERS = 4_000_000
"""Characters of content in one transaction, about."""

Prepare = Callable[[ConversationKey], Awaitable[None]]
"""Called with each conversation's key before anything of it is looked up."""


class Imported(msgspec.Struct, kw_only=True):
    """What became of one conversation of a file.

    `known` messages were there before, `changed` ones were there with another content (the file's stands beside it, on a branch),
    `branch` is where the file's main path ends.
    """

    conversation_id: str
    format: str
    branch: str = MAIN
    added: int = 0
    known: int = 0
    changed: int = 0
    branches: int = 0
    checkpoints: int = 0
    opaque: int = 0
    skipped: int = 0
    problems: list[Problem] = msgspec.field(default_factory=list)
    problem_count: int = 0

    def row(self) -> dict[str, Any]:
        """Return the counts as a JSON object."""
        return {name: getattr(self, name) for name in self.__struct_fields__ if name != "problems"}

    def note(self, event: OpaqueRow | Skipped | Problem) -> None:
        """Count what gave no message; problems are kept in words up to `MAX_PROBLEMS`."""
        match event:
            case OpaqueRow():
                self.opaque += 1
            case Skipped():
                self.skipped += 1
            case Problem(level=level):
                self.problem_count += level == "error"
                if level == "error" and len(self.problems) < MAX_PROBLEMS:
                    self.problems.append(event)
            case _ as never:
                assert_never(never)


async def import_events(
    store: Store,
    events: Iterable[Event],
    *,
    tenant: str,
    user: str,
    conversation_id: str | None = None,
    file_name: str = "imported",
    policy: Policy,
    clock: Clock,
    prepare: Prepare | None = None,
    batch: int = BATCH,
) -> list[Imported]:
    """Import every conversation of a file and return what became of each.

    `conversation_id` names a file's only conversation (more are numbered). Without it a conversation has its own id, or
    where the format has none `file_name`; when another conversation has that name, a hash of its first message is added.

    `batch` is how many messages are written in one transaction at most.

    Raises TranscriptError for a file that holds no message, StoreError when the store fails; what was imported before stays.
    """
    done: list[Imported] = []
    early = Imported(conversation_id="", format="")  # some formats tell of a conversation after its rows
    current: _Import | None = None
    for event in events:
        if isinstance(event, Start):
            if current is not None:
                done.append(await current.finish())
            name, is_own = _name_of(event, conversation_id, file_name, len(done))
            key = ConversationKey(tenant=tenant, user=user, conversation_id=name)
            report, early = _begun(early, name, event.format), Imported(conversation_id="", format="")
            current = _Import(store, key, report, policy, clock, prepare, is_own=is_own, batch=batch)
        elif current is not None:
            await current.take(event)
        elif isinstance(event, OpaqueRow | Skipped | Problem):
            early.note(event)
    if current is not None:
        done.append(await current.finish())
    _require_messages(done, early)
    return done


def _name_of(start: Start, given: str | None, file_name: str, number: int) -> tuple[str, bool]:
    """Return a conversation's name, and whether it is its own: no other conversation of the store can have it."""
    base = given or start.conversation_id
    suffix = f"-{number + 1}" if number and (given or not start.conversation_id) else ""
    return f"{base or file_name}{suffix}", base is not None


def _begun(early: Imported, name: str, format_name: str) -> Imported:
    early.conversation_id, early.format = name, format_name
    return early


def _require_messages(done: list[Imported], early: Imported) -> None:
    if any(report.added or report.known for report in done):
        return
    for problem in (problem for report in (*done, early) for problem in report.problems):
        raise problem.as_error()
    raise TranscriptError("file", "it holds no messages", "Give a file with at least one message.")


class _Batch:
    """Messages to be written together, by the file's branches in the order in which these began: a branch after its parent."""

    def __init__(self) -> None:
        self.paths: dict[str, list[Message]] = {}
        self.forks: dict[str, Forked] = {}
        self.count = self.characters = 0

    def add(self, branch: str, message: Message) -> None:
        self.paths.setdefault(branch, []).append(message)
        self.count += 1
        for part in message.parts:
            self.characters += len(part.text) if type(part) is Text else _size(part)

    def fork(self, fork: Forked) -> None:
        self.forks[fork.name] = fork
        self.paths.setdefault(fork.name, [])

    def is_full(self, most: int) -> bool:
        return self.count >= most or self.characters >= BATCH_CHARACTERS

    def first_id(self) -> str | None:
        return next((messages[0].id for messages in self.paths.values() if messages), None)


def _size(part: Part) -> int:
    """Return about how many characters a part holds."""
    match part:
        case Text(text=text) | Reasoning(text=text):
            return len(text)
        case ToolResult(content=content):
            return sum(map(_size, content))
        case ToolCall(arguments=arguments):
            return len(arguments)
        case Image(data=data):
            return len(data or "")
        case Opaque(payload=payload):
            return len(payload)
        case _ as never:
            assert_never(never)


class _Import:
    """One conversation on its way into the store: batches of messages, one is held at a time."""

    def __init__(
        self,
        store: Store,
        key: ConversationKey,
        report: Imported,
        policy: Policy,
        clock: Clock,
        prepare: Prepare | None,
        *,
        is_own: bool,
        batch: int,
    ) -> None:
        self.store, self.key, self.report, self.policy, self.clock = store, key, report, policy, clock
        self.prepare, self.is_own, self.most = prepare, is_own, batch
        self.merge: Merge | None = None
        self.batch = _Batch()
        self.boundaries: list[SummaryBoundary] = []

    async def take(self, event: Event) -> None:
        match event:
            case Entry(message=message, branch=branch):
                self.batch.add(branch, message)
                if self.batch.is_full(self.most):
                    await self.flush()
            case Forked():
                self.batch.fork(event)
            case SummaryBoundary():
                self.boundaries.append(event)
            case OpaqueRow() | Skipped() | Problem():
                self.report.note(event)
            case Titled() | Start():
                pass

    async def flush(self) -> None:
        """Write what is held. Reading meanwhile would be slower: SQLite gives up the interpreter's lock for every row."""
        batch, self.batch = self.batch, _Batch()
        await self.write(batch)

    async def write(self, batch: _Batch) -> None:
        first_id = batch.first_id()
        if first_id is None:
            return
        merge = await self.begun(first_id)
        for branch, messages in batch.paths.items():
            if branch in batch.forks:
                problem = await merge.declare(batch.forks[branch])
                if problem is not None:
                    self.report.note(problem)
            if messages:
                await merge.take(messages, branch)

    async def begun(self, first_id: str) -> Merge:
        """Return the merge, begun on first use: only the first message tells conversations of one file name apart."""
        if self.merge is None:
            self.merge = await self.begin()
            if not self.is_own and await self.merge.is_foreign(first_id):
                name = f"{self.key.conversation_id}-{short_hash(first_id, 4)}"
                self.key, self.report.conversation_id = replace(self.key, conversation_id=name), name
                self.merge = await self.begin()
        return self.merge

    async def begin(self) -> Merge:
        if self.prepare is not None:
            await self.prepare(self.key)
        return await Merge.begin(self.store, self.key, self.report)

    async def finish(self) -> Imported:
        await self.flush()
        if self.merge is not None:
            self.report.branch = self.merge.branch_of(MAIN)
            for boundary in self.boundaries:
                ids = self.merge.stored_id(boundary.summary_id), self.merge.stored_id(boundary.last_id)
                adopted = await adopt_summary(self.store, self.key, *ids, self.policy, self.clock, self.report.format)
                self.report.checkpoints += adopted
        return self.report
