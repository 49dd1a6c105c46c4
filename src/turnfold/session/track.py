"""What a session knows of the branch in use: the newest checkpoint that is true of it, and every row after that.

Memory is bounded by the view, not by the conversation: covered rows are not held, and catching up reads only what is new.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from turnfold.core.anchoring import correction_factor
from turnfold.core.checkpoint import Checkpoint, CheckpointKey, CheckpointRecord
from turnfold.core.groups import is_final
from turnfold.core.reasons import Reason
from turnfold.core.summary_row import is_own_summary
from turnfold.core.validation import validate_record, validate_stored
from turnfold.core.view import closed_under_tools
from turnfold.errors import NotFoundError, StoreError
from turnfold.messages.log import MAIN, ConversationKey, LogEntry
from turnfold.messages.model import Message, leading_system
from turnfold.ports import Store
from turnfold.runtime.meter import Meter

PAGE = 8
"""Checkpoint versions read at a time while looking for one that holds on this branch."""

PAIR_SPAN = 64
"""Rows before and after a call among which its results are looked for; agents write them next to it."""

STALE = -1
"""A head version that no store has: the next look finds another and loads again."""


class Track:
    """The loaded part of one branch. `reasons` say which newer checkpoints were passed over, and why; `factor` is how many
    tokens the provider counts for one of ours, as its newest reply to `model` shows;
    `memory_update` is the newest one in force.
    """

    def __init__(
        self, store: Store, key: CheckpointKey, branch: str, *, meter: Meter, fingerprint: str, model: str | None
    ) -> None:
        self.store, self.key, self.branch, self.meter, self.fingerprint = store, key, branch, meter, fingerprint
        self.model, self.factor = model, 1.0
        self.memory_update: Message | None = None
        self.conversation: ConversationKey = key.conversation
        self.checkpoint: Checkpoint | None = None
        self.head_version = 0
        self.covered_position = 0
        self.position = 0
        self.rows: list[Message] = []
        self.request: Message | None = None
        self.reasons: tuple[Reason, ...] = ()
        self.writable = True
        self._covered_prompt: tuple[Message, ...] = ()

    async def load(self) -> None:
        """Read the newest usable checkpoint and the rows after its coverage. A new conversation has neither.

        When a read fails, what was known stays, and the next `catch_up` loads again.
        """
        self.head_version = STALE
        head_version = await self.store.head_version(self.key)
        checkpoint, position = await self._newest_usable()
        request = await self._load_request(checkpoint)
        rows = await self._rows_after(position)
        self._covered_prompt = await self._load_prompt(position)
        self.checkpoint, self.covered_position, self.request = checkpoint, position, request
        self.position, self.rows, self.factor, self.memory_update = position, [], 1.0, None
        self.take(rows)
        self.head_version = head_version

    async def reload(self) -> None:
        """Load what is true after a write. When that fails the turn still has its view, and the next look loads again."""
        with contextlib.suppress(StoreError):
            await self.load()

    async def catch_up(self) -> None:
        """Read what others wrote since, in one look: rows, and checkpoints. Load anew after a purge.

        Whoever else awaits here, or appends meanwhile, may have taken some of the rows already.
        """
        changes = await self.store.changes(self.key, branch=self.branch, after=self.position)
        new = [entry for entry in changes.entries if entry.position > self.position]
        gone = changes.head_version != self.head_version or changes.position < self.position
        if gone or (new and not self.follows(new)):
            await self.load()
        else:
            self.take(new)

    async def _rows_after(self, position: int) -> Sequence[LogEntry]:
        try:
            return await self.store.read(self.conversation, branch=self.branch, after=position)
        except NotFoundError:
            if position or self.branch != MAIN:
                raise
            return ()

    def take(self, entries: Sequence[LogEntry]) -> None:
        """Add rows that follow the last one known."""
        if not entries:
            return
        self.meter.learn(entries)
        self.rows.extend(entry.message for entry in entries)
        self.position = entries[-1].position
        folded = self.checkpoint.folded if self.checkpoint else ()
        for entry in entries:
            if entry.message.kind == "memory_update" and entry.message.id not in folded:
                self.memory_update = entry.message
        for entry in reversed(entries):
            factor = correction_factor(entry.message, self.model)
            if factor is not None:
                self.factor = factor
                break

    def follows(self, entries: Sequence[LogEntry]) -> bool:
        """Whether the rows come right after the last one known (nobody wrote in between)."""
        return bool(entries) and entries[0].position == self.position + 1

    async def _newest_usable(self) -> tuple[Checkpoint | None, int]:
        reasons: list[Reason] = []
        self.writable = True
        before: int | None = None
        while records := await self.store.newest(self.key, before=before, limit=PAGE):
            for record in records:
                position = await self._usable_position(record, reasons)
                if position is not None:
                    self.reasons = tuple(reasons)
                    return record.checkpoint, position
            before = records[-1].version
        self.reasons = tuple(reasons)
        return None, 0

    async def _usable_position(self, record: CheckpointRecord, reasons: list[Reason]) -> int | None:
        """Return where the coverage ends on this branch, or None with the reason noted."""
        validity = validate_record(record, fingerprint=self.fingerprint)
        position = 0
        if validity.status == "usable" and record.checkpoint and (coverage := record.checkpoint.coverage):
            entry = await self._at_seq(coverage.count)
            validity = validate_stored(coverage, entry.chain if entry else None)
            position = entry.position if entry else 0
        if validity.status == "usable":
            return position
        self.writable = self.writable and validity.status != "unverifiable"
        reasons.extend(
            Reason(code=reason.code, detail=f"checkpoint {record.version}: {reason.detail}")
            for reason in validity.reasons
        )
        return None

    async def _at_seq(self, seq: int) -> LogEntry | None:
        try:
            return await self.store.at_seq(self.conversation, seq, branch=self.branch)
        except NotFoundError:
            return None

    async def _load_request(self, checkpoint: Checkpoint | None) -> Message | None:
        """Return the covered message that stands beside the summary: the request of the turn that the coverage leaves open.

        On the branch that was compacted the checkpoint says whether there is one. A branch that left before (a regenerated
        reply) may have none of the answers that were kept there, so there the request is always shown.
        """
        if checkpoint is None or checkpoint.coverage is None:
            return None
        if checkpoint.open_request_id is not None:
            return await self._covered_row(checkpoint.open_request_id)
        if await self._on_path(checkpoint.summary_message_id):
            return None
        return await self._open_before(checkpoint.coverage.count)

    async def _covered_row(self, message_id: str) -> Message:
        found = await self.store.find(self.conversation, (message_id,))
        if not found:
            raise NotFoundError("message", message_id, "The checkpoint refers to it: verify the store.")
        return found[0].message

    async def _on_path(self, message_id: str | None) -> bool:
        """Whether the row, of any kind, is on this branch's path."""
        found = await self.store.find(self.conversation, (message_id,) if message_id else ())
        if not found:
            return False
        at = await self.store.read(self.conversation, branch=self.branch, after=found[0].position - 1, limit=1)
        return bool(at) and at[0].message.id == message_id

    async def _open_before(self, seq: int) -> Message | None:
        """Return the latest user message up to number `seq` when no final answer follows it up to there."""
        for number in range(seq, 0, -1):
            entry = await self._at_seq(number)
            if entry is None or is_final(entry.message):
                return None
            if entry.message.role == "user":
                return entry.message
        return None

    def history(self) -> tuple[Message, ...]:
        """Return the rows after the coverage that belong in a view: no folded rows, no summaries of our own."""
        folded = frozenset(self.checkpoint.folded) if self.checkpoint else frozenset()
        return tuple(row for row in self.rows if row.id not in folded and not is_own_summary(row))

    def folded(self) -> tuple[str, ...]:
        """Return the ids of the folded rows after the coverage."""
        folded = frozenset(self.checkpoint.folded) if self.checkpoint else frozenset()
        return tuple(row.id for row in self.rows if row.id in folded)

    async def _load_prompt(self, covered: int) -> tuple[Message, ...]:
        if not covered:
            return ()
        first = await self.store.read(self.conversation, branch=self.branch, limit=min(covered, PAGE))
        return leading_system(entry.message for entry in first)

    def prompt_ids(self) -> frozenset[str]:
        """Return the ids of the system messages that the conversation itself begins with, as imported ones do.

        No compaction takes them out of view: they are pinned without anybody saying so.
        """
        leading = self._covered_prompt if self.covered_position else leading_system(self.rows)
        return frozenset(message.id for message in leading)

    async def covered(self, ids: Iterable[str]) -> tuple[Message, ...]:
        """Return those of the messages that this branch's coverage holds, in log order."""
        return tuple(entry.message for entry in await self._covered(ids))

    async def covered_whole(self, ids: frozenset[str]) -> tuple[Message, ...]:
        """Return those of the messages that the coverage holds, and the calls or results without which none can be sent."""
        found, wanted = await self._covered(ids), set(ids)
        for entry in found:
            if entry.message.calls or entry.message.role == "tool":
                near = await self.store.read(
                    self.conversation,
                    branch=self.branch,
                    after=max(0, entry.position - PAIR_SPAN),
                    limit=2 * PAIR_SPAN,
                )
                wanted |= closed_under_tools([other.message for other in near], {entry.message.id})
        entries = found if wanted == ids else await self._covered(wanted)
        return tuple(entry.message for entry in entries)

    async def _covered(self, ids: Iterable[str]) -> list[LogEntry]:
        found = await self.store.find(self.conversation, ids)
        inside = []
        for entry in found:
            if entry.seq is not None and entry.position <= self.covered_position:
                on_path = await self._at_seq(entry.seq)
                if on_path is not None and on_path.message.id == entry.message.id:
                    inside.append(entry)
        return sorted(inside, key=lambda entry: entry.position)
