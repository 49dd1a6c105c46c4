"""MemoryStore: a whole `Store` in plain Python values, for tests and for conversations that need not outlive the process.

It keeps the same encoded rows as the other stores, so what it refuses and what it gives back are theirs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import msgspec

from turnfold.core.checkpoint import Checkpoint, CheckpointKey, CheckpointRecord
from turnfold.errors import ChainError, CorruptRowError, DuplicateMessageError, NotFoundError, VersionConflict
from turnfold.messages.log import MAIN, Branch, ConversationInfo, ConversationKey, LogEntry, VerifyReport
from turnfold.messages.model import Message
from turnfold.ports import Changes
from turnfold.stores.paths import Node, owner_of_position, owner_of_seq, window
from turnfold.stores.rows import (
    Prepared,
    Stored,
    chain_text,
    decode_counts,
    encode_checkpoint,
    encode_counts,
    place,
    prepare,
    require_bounds,
    require_key,
    require_outside_chain,
    require_position,
    require_text,
    to_entry,
    to_record,
    to_stored,
)
from turnfold.stores.verification import Findings, check_branch, check_checkpoints, report


class _Line(NamedTuple):
    """A checkpoint's row."""

    format: int
    body: bytes
    invalidated: str | None


@dataclass
class _Branch:
    """A branch's place in the tree, its head and its own rows. `by_seq` holds the indexes of its messages in `rows`."""

    number: int
    base: int | None
    fork_seq: int
    head: Branch
    rows: list[Stored] = field(default_factory=list)
    by_seq: list[int] = field(default_factory=list)

    @property
    def node(self) -> Node:
        """The branch as walks need it."""
        head = self.head
        return Node(self.number, head.name, self.base, head.fork_position, self.fork_seq, head.position, head.seq)

    def at(self, position: int) -> Stored:
        """The row at a position that the branch owns."""
        return self.rows[position - self.head.fork_position - 1]


@dataclass
class _Conversation:
    """One conversation: its branches in order of creation, where each message is, checkpoints and state."""

    updated_at: int
    branches: list[_Branch] = field(default_factory=list)
    places: dict[str, tuple[_Branch, int]] = field(default_factory=dict)
    checkpoints: dict[str, list[_Line]] = field(default_factory=dict)
    state: dict[str, tuple[int, bytes]] = field(default_factory=dict)

    def node(self, number: int) -> Node:
        """A branch by number."""
        return self.branches[number - 1].node

    def find(self, name: str) -> _Branch | None:
        """A branch by name."""
        return next((branch for branch in self.branches if branch.head.name == name), None)

    def require(self, name: str, key: ConversationKey) -> _Branch:
        """A branch by name. Raises NotFoundError."""
        branch = self.find(name)
        if branch is None:
            raise NotFoundError("branch", name, f"It is not in conversation {str(key)!r}.")
        return branch

    def make(self, name: str, key: ConversationKey) -> _Branch:
        """A branch by name; the main branch is added as needed."""
        if name != MAIN or self.find(MAIN) is not None:
            return self.require(name, key)
        return self.add(Branch(), base=None)

    def add(self, head: Branch, *, base: int | None) -> _Branch:
        """Add a branch without rows of its own."""
        branch = _Branch(number=len(self.branches) + 1, base=base, fork_seq=head.seq, head=head)
        self.branches.append(branch)
        return branch

    def entries(self, key: ConversationKey, leaf: Node, *, after: int, limit: int | None) -> tuple[LogEntry, ...]:
        """Rows of the path that ends at a branch."""
        return tuple(
            to_entry(key, self.branches[segment.node.number - 1].at(position))
            for segment in window(leaf, self.node, after=max(after, 0), limit=limit)
            for position in range(segment.after + 1, segment.through + 1)
        )

    def write(self, branch: _Branch, rows: Sequence[Prepared]) -> tuple[LogEntry, ...]:
        """Write rows after a branch's head, all or nothing."""
        for row in rows:
            if row.message.id in self.places:
                raise DuplicateMessageError(row.message.id)
        entries, end = place(rows, branch.head)
        for stored in to_stored(entries, rows, branch.head.seq):
            if stored.chained:
                branch.by_seq.append(len(branch.rows))
            self.places[stored.message_id] = (branch, stored.position)
            branch.rows.append(stored)
        branch.head = end
        return entries


class MemoryStore:
    """A `Store` that lives as long as the object. `now_ms` gives UTC milliseconds."""

    def __init__(self, *, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._now_ms = now_ms
        self._all: dict[ConversationKey, _Conversation] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    def _require(self, key: ConversationKey) -> _Conversation:
        conversation = self._all.get(key)
        if conversation is None:
            raise NotFoundError("conversation", str(key))
        return conversation

    def _touched(self, key: ConversationKey, conversation: _Conversation) -> None:
        """Keep a conversation that was written to; called once nothing can fail any more."""
        conversation.updated_at = max(conversation.updated_at, self._now_ms())
        self._all[key] = conversation

    def _found_or_new(self, key: ConversationKey) -> _Conversation:
        return self._all.get(key) or _Conversation(updated_at=self._now_ms())

    async def append(
        self,
        key: ConversationKey,
        messages: Sequence[Message],
        *,
        branch: str = MAIN,
        counts: Mapping[str, Sequence[int]] | None = None,
        expected_position: int | None = None,
    ) -> tuple[LogEntry, ...]:
        """As `MessageLog.append`. InputError, before anything is written, for a message that cannot be stored."""
        require_key(key)
        rows = prepare(messages, counts)
        if branch != MAIN:
            self._require(key)
        conversation = self._found_or_new(key)
        found = conversation.find(branch) if branch == MAIN else conversation.require(branch, key)
        require_position(found.head if found else Branch(), expected_position)
        if not rows:
            return ()
        entries = conversation.write(found or conversation.make(branch, key), rows)
        self._touched(key, conversation)
        return entries

    async def read(
        self, key: ConversationKey, *, branch: str = MAIN, after: int = 0, limit: int | None = None
    ) -> tuple[LogEntry, ...]:
        """As `MessageLog.read`."""
        require_bounds(limit)
        conversation = self._require(key)
        return conversation.entries(key, conversation.require(branch, key).node, after=after, limit=limit)

    async def head(self, key: ConversationKey, *, branch: str = MAIN) -> Branch:
        """As `MessageLog.head`."""
        return self._require(key).require(branch, key).head

    async def at_seq(self, key: ConversationKey, seq: int, *, branch: str = MAIN) -> LogEntry | None:
        """As `MessageLog.at_seq`."""
        conversation = self._require(key)
        leaf = conversation.require(branch, key).node
        if not 1 <= seq <= leaf.seq:
            return None
        owner = conversation.branches[owner_of_seq(leaf, conversation.node, seq).number - 1]
        return to_entry(key, owner.rows[owner.by_seq[seq - owner.fork_seq - 1]])

    async def find(self, key: ConversationKey, message_ids: Iterable[str]) -> tuple[LogEntry, ...]:
        """As `MessageLog.find`."""
        conversation = self._all.get(key)
        places = conversation.places if conversation else {}
        found = (places.get(message_id) for message_id in message_ids)
        return tuple(to_entry(key, branch.at(position)) for branch, position in filter(None, found))

    async def fork(self, key: ConversationKey, name: str, *, position: int, branch: str = MAIN) -> Branch:
        """As `MessageLog.fork`. NotFoundError for a position beyond the branch's end."""
        require_text("branch name", name)
        conversation = self._require(key)
        parent = conversation.require(branch, key)
        taken = conversation.find(name)
        if taken is not None:
            raise VersionConflict(f"branch {name!r}", 0, taken.head.position)
        if not 0 <= position <= parent.head.position:
            raise NotFoundError(
                "message", f"at position {position}", f"Branch {branch!r} ends at {parent.head.position}."
            )
        start, base = _fork_point(conversation, parent, position)
        head = msgspec.structs.replace(start, name=name, parent=branch, fork_position=position)
        conversation.add(head, base=base)
        self._touched(key, conversation)
        return head

    async def branches(self, key: ConversationKey) -> tuple[Branch, ...]:
        """As `MessageLog.branches`."""
        found = tuple(branch.head for branch in self._require(key).branches)
        if not found:
            raise NotFoundError("conversation", str(key), "It has checkpoints or state, but no messages.")
        return found

    async def save_counts(self, key: ConversationKey, counter: str, counts: Mapping[str, int]) -> None:
        """As `MessageLog.save_counts`; ids that are not there are left out."""
        require_text("counter name", counter)
        conversation = self._all.get(key)
        if conversation is None:
            return
        for message_id in counts.keys() & conversation.places.keys():
            branch, position = conversation.places[message_id]
            row = branch.at(position)
            merged = encode_counts(decode_counts(row.counts) | {counter: counts[message_id]})
            branch.rows[position - branch.head.fork_position - 1] = row._replace(counts=merged)

    async def conversations(
        self, *, tenant: str = "", user: str | None = None, after: ConversationKey | None = None, limit: int = 100
    ) -> tuple[ConversationInfo, ...]:
        """As `MessageLog.conversations`; one that has only checkpoints or state is listed without branches."""
        require_bounds(limit)
        keys = sorted(
            (key for key in self._all if key.tenant == tenant and user in (None, key.user)), key=_in_key_order
        )
        beyond = [key for key in keys if after is None or _in_key_order(key) > _in_key_order(after)]
        return tuple(self._info(key) for key in beyond[:limit])

    def _info(self, key: ConversationKey) -> ConversationInfo:
        conversation = self._all[key]
        return ConversationInfo(
            key=key,
            branches=tuple(branch.head.name for branch in conversation.branches),
            rows=len(conversation.places),
            updated_at=conversation.updated_at,
        )

    async def purge(self, key: ConversationKey) -> int:
        """As `MessageLog.purge`; a conversation that is not there has nothing to remove."""
        conversation = self._all.pop(key, None)
        return len(conversation.places) if conversation else 0

    async def verify(self, key: ConversationKey | None = None) -> VerifyReport:
        """As `MessageLog.verify`. NotFoundError for no such key."""
        if key is not None:
            return report([_check(key, self._require(key))])
        return report([_check(each, self._all[each]) for each in sorted(self._all, key=_in_key_order)])

    async def save(
        self,
        key: CheckpointKey,
        checkpoint: Checkpoint,
        *,
        expected_version: int,
        rows: Sequence[Message] = (),
        branch: str = MAIN,
    ) -> int:
        """As `CheckpointStore.save`."""
        require_key(key)
        require_outside_chain(rows)
        body, prepared = encode_checkpoint(key, checkpoint, expected_version), prepare(rows)
        conversation = self._found_or_new(key.conversation)
        line = conversation.checkpoints.get(key.scenario, [])
        if len(line) != expected_version:
            raise VersionConflict(f"checkpoint {key}", expected_version, len(line))
        if prepared:
            conversation.write(conversation.make(branch, key.conversation), prepared)
        conversation.checkpoints[key.scenario] = [*line, _Line(checkpoint.format, body, None)]
        self._touched(key.conversation, conversation)
        return expected_version + 1

    def _line(self, key: CheckpointKey) -> list[_Line]:
        conversation = self._all.get(key.conversation)
        return conversation.checkpoints.get(key.scenario, []) if conversation else []

    async def head_version(self, key: CheckpointKey) -> int:
        """As `CheckpointStore.head_version`."""
        return len(self._line(key))

    async def changes(self, key: CheckpointKey, *, branch: str = MAIN, after: int = 0) -> Changes:
        """As `Store.changes`."""
        conversation_key = key.conversation
        conversation = self._all.get(conversation_key) if branch == MAIN else self._require(conversation_key)
        if conversation is None:
            return Changes()
        version = len(conversation.checkpoints.get(key.scenario, ()))
        leaf = conversation.find(branch) if branch == MAIN else conversation.require(branch, conversation_key)
        if leaf is None:
            return Changes(head_version=version)
        entries = conversation.entries(conversation_key, leaf.node, after=after, limit=None)
        return Changes(head_version=version, position=leaf.head.position, entries=entries)

    async def load(self, key: CheckpointKey, version: int) -> CheckpointRecord:
        """As `CheckpointStore.load`."""
        line = self._line(key)
        if not 1 <= version <= len(line):
            raise NotFoundError("checkpoint", f"{key} version {version}")
        return to_record(key, version, *line[version - 1])

    async def newest(
        self, key: CheckpointKey, *, before: int | None = None, limit: int = 8
    ) -> tuple[CheckpointRecord, ...]:
        """As `CheckpointStore.newest`."""
        require_bounds(limit)
        line = self._line(key)
        first = len(line) if before is None else min(before - 1, len(line))
        return tuple(to_record(key, version, *line[version - 1]) for version in range(first, max(first - limit, 0), -1))

    async def invalidate(self, key: CheckpointKey, version: int, reason: str) -> None:
        """As `CheckpointStore.invalidate`; the first reason stays."""
        require_text("reason", reason)
        line = self._line(key)
        if not 1 <= version <= len(line):
            raise NotFoundError("checkpoint", f"{key} version {version}")
        if line[version - 1].invalidated is None:
            line[version - 1] = line[version - 1]._replace(invalidated=reason)

    async def get_state(self, key: ConversationKey, name: str) -> tuple[int, bytes]:
        """As `StateStore.get_state`."""
        conversation = self._all.get(key)
        return conversation.state.get(name, (0, b"")) if conversation else (0, b"")

    async def put_state(self, key: ConversationKey, name: str, document: bytes, *, expected_version: int) -> int:
        """As `StateStore.put_state`."""
        require_key(key)
        require_text("state name", name)
        conversation = self._found_or_new(key)
        found, _ = conversation.state.get(name, (0, b""))
        if found != expected_version:
            raise VersionConflict(f"state {name!r} of {key}", expected_version, found)
        conversation.state[name] = (found + 1, bytes(document))
        self._touched(key, conversation)
        return found + 1


def _in_key_order(key: ConversationKey) -> tuple[str, str, str]:
    return key.tenant, key.user, key.conversation_id


def _fork_point(conversation: _Conversation, parent: _Branch, position: int) -> tuple[Branch, int | None]:
    """Return a path's end after its first `position` rows, and the number of the branch that owns the last of them."""
    if position == 0:
        return Branch(), None
    owner = conversation.branches[owner_of_position(parent.node, conversation.node, position).number - 1]
    row = owner.at(position)
    return Branch(position=position, seq=row.seq, chain=chain_text(row.chain)), owner.number


def _check(key: ConversationKey, conversation: _Conversation) -> Findings:
    messages = checkpoints = 0
    try:
        for branch in conversation.branches:
            start, _ = _fork_point(conversation, branch, branch.head.fork_position)
            messages += check_branch(key, start, branch.fork_seq, branch.rows, branch.head)
        for scenario, line in conversation.checkpoints.items():
            line_key = CheckpointKey(
                tenant=key.tenant, user=key.user, conversation_id=key.conversation_id, scenario=scenario
            )
            records = [to_record(line_key, version, *row) for version, row in enumerate(line, 1)]
            check_checkpoints(line_key, records, lambda message_id: _chain_at(key, conversation, message_id))
            checkpoints += len(records)
    except (ChainError, CorruptRowError, ValueError) as error:
        return Findings(messages, checkpoints, str(error))
    return Findings(messages, checkpoints, None)


def _chain_at(key: ConversationKey, conversation: _Conversation, message_id: str) -> tuple[int, str] | None:
    place_of = conversation.places.get(message_id)
    if place_of is None:
        return None
    branch, position = place_of
    row = branch.at(position)
    return row.seq, chain_text(row.chain)
