"""Brings decoded transcripts into a store: messages, branches, and foreign summaries that can be resolved.

Ids in a transcript are stable, so importing a file again adds nothing, and an import that was interrupted goes on where it
stopped. Messages are appended in batches; one batch is all that is held.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from turnfold.core.checkpoint import Audit, Checkpoint, CheckpointKey, extend_coverage
from turnfold.core.envelope import raw_summary
from turnfold.core.policy import Policy
from turnfold.errors import VersionConflict
from turnfold.messages.log import MAIN, ConversationKey
from turnfold.messages.model import Message
from turnfold.ports import Clock, Store
from turnfold.session.conversation import SCENARIO
from turnfold.session.session import session_fingerprint
from turnfold.transcripts.document import (
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

BATCH = 500
"""Messages in one transaction."""

MAX_PROBLEMS = 1000
"""Problems kept in words; beyond, they are counted."""


class Imported(msgspec.Struct, kw_only=True):
    """What became of one conversation of a file."""

    conversation_id: str
    format: str
    added: int = 0
    known: int = 0
    branches: int = 0
    checkpoints: int = 0
    opaque: int = 0
    skipped: int = 0
    problems: list[str] = msgspec.field(default_factory=list)
    problem_count: int = 0

    def row(self) -> dict[str, Any]:
        """Return the counts as a JSON object."""
        return {name: getattr(self, name) for name in self.__struct_fields__ if name != "problems"}


async def import_events(
    store: Store,
    events: Iterable[Event],
    *,
    tenant: str,
    user: str,
    conversation_id: str | None,
    policy: Policy,
    clock: Clock,
) -> list[Imported]:
    """Import every conversation of a file. `conversation_id` names a file's only one; None takes the file's own names.

    Raises TranscriptError for a file that is not a conversation, StoreError when the store fails.
    """
    done: list[Imported] = []
    current: _Import | None = None
    for event in events:
        if isinstance(event, Start):
            if current is not None:
                done.append(await current.finish())
            name = event.conversation_id or f"imported-{len(done) + 1}"
            if conversation_id is not None:
                name = conversation_id if not done else f"{conversation_id}-{len(done) + 1}"
            key = ConversationKey(tenant=tenant, user=user, conversation_id=name)
            current = _Import(store, key, event.format, policy, clock)
        elif current is not None:
            await current.take(event)
    if current is not None:
        done.append(await current.finish())
    return done


class _Import:
    """One conversation on its way into the store."""

    def __init__(self, store: Store, key: ConversationKey, format_name: str, policy: Policy, clock: Clock) -> None:
        self.store, self.key, self.policy, self.clock = store, key, policy, clock
        self.report = Imported(conversation_id=key.conversation_id, format=format_name)
        self.batch: list[Message] = []
        self.branch = MAIN
        self.boundaries: list[SummaryBoundary] = []

    async def take(self, event: Event) -> None:
        match event:
            case Entry(message=message, branch=branch):
                if branch != self.branch or len(self.batch) >= BATCH:
                    await self.flush()
                    self.branch = branch
                self.batch.append(message)
            case Forked():
                await self.flush()
                await self._fork(event)
            case SummaryBoundary():
                self.boundaries.append(event)
            case Problem():
                self._note(event)
            case OpaqueRow():
                self.report.opaque += 1
            case Skipped():
                self.report.skipped += 1
            case Titled() | Start():
                pass

    def _note(self, problem: Problem) -> None:
        if problem.level == "error":
            self.report.problem_count += 1
            if len(self.report.problems) < MAX_PROBLEMS:
                self.report.problems.append(f"{problem.place}: {problem.reason}")

    async def flush(self) -> None:
        """Append what is held, without what the conversation has already."""
        batch, self.batch = self.batch, []
        if not batch:
            return
        known = {entry.message.id for entry in await self.store.find(self.key, [m.id for m in batch])}
        new = [message for message in batch if message.id not in known]
        if new:
            await self.store.append(self.key, new, branch=self.branch)
        self.report.added += len(new)
        self.report.known += len(batch) - len(new)

    async def _fork(self, fork: Forked) -> None:
        position = 0
        if fork.after is not None:
            position = (await self.store.find(self.key, (fork.after,)))[0].position
        try:
            await self.store.fork(self.key, fork.name, position=position, branch=fork.parent)
        except VersionConflict:
            return  # an earlier import made it
        self.report.branches += 1

    async def finish(self) -> Imported:
        await self.flush()
        for boundary in self.boundaries:
            await self._adopt(boundary)
        return self.report

    async def _adopt(self, boundary: SummaryBoundary) -> None:
        """Store a foreign summary as a checkpoint: its covered messages are all in the log."""
        key = CheckpointKey(
            tenant=self.key.tenant, user=self.key.user, conversation_id=self.key.conversation_id, scenario=SCENARIO
        )
        records = await self.store.newest(key, limit=1000)
        if any(r.checkpoint and r.checkpoint.summary_message_id == boundary.summary_id for r in records):
            return
        found = await self.store.find(self.key, (boundary.summary_id, boundary.last_id))
        if len(found) != 2:
            return
        summary, last = found
        covered = await self.store.read(self.key, branch=boundary.branch, limit=last.position)
        coverage = extend_coverage(None, [entry.message for entry in covered])
        version = records[0].version if records else 0
        checkpoint = Checkpoint(
            version=version + 1,
            created_at=summary.message.created_at or self.clock.now_ms(),
            fingerprint=session_fingerprint(self.policy),
            summary=raw_summary(summary.message) or summary.message.text,
            summary_message_id=boundary.summary_id,
            coverage=coverage,
            folded=(boundary.summary_id,),
            audit=Audit(trigger="manual", mode="imported", summarizer=self.report.format),
        )
        await self.store.save(key, checkpoint, expected_version=version)
        self.report.checkpoints += 1
