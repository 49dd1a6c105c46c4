"""Where the messages of a file go in a log that may have some of them: next to what they follow in the file.

A message that the log has, after what it follows here, is known. A new one is appended where the file's path stands; when the log
goes on there with something else, it begins a branch. So a longer file adds its new messages, and an edited one becomes
a branch that leaves the log where the file does. A message under a known id that says something else, or that follows
something else, is kept under a derived id, the same at each import. What a file no longer holds stays in the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from turnfold.errors import DuplicateMessageError, NotFoundError, VersionConflict
from turnfold.messages.canonical import GENESIS, digest
from turnfold.messages.log import MAIN, Branch, ConversationKey, LogEntry
from turnfold.messages.model import Message
from turnfold.ports import Store
from turnfold.transcripts.document import Forked, Problem
from turnfold.transcripts.naming import branch_name

ATTEMPTS = 5
"""How often a batch is placed anew after another process wrote to the conversation."""


class Tally(Protocol):
    """Counts of what was done."""

    added: int
    known: int
    changed: int
    branches: int


class Cursor(msgspec.Struct, frozen=True, kw_only=True):
    """Where a path of the file stands in the log: after row `position`, which `branch` owns.

    `name` is what the file calls a branch of which nothing has been placed yet.
    """

    branch: str = MAIN
    position: int = 0
    chain: str = GENESIS
    name: str | None = None


def _after(entry: LogEntry) -> Cursor:
    return Cursor(branch=entry.branch, position=entry.position, chain=entry.chain)


class Merge:
    """One conversation of the store that takes up a file's messages, path by path."""

    def __init__(self, store: Store, key: ConversationKey, tally: Tally) -> None:
        self._store, self._key, self._tally = store, key, tally
        self._heads: dict[str, Branch] = {}
        self._cursors: dict[str, Cursor] = {MAIN: Cursor()}
        self._renamed: dict[str, str] = {}  # an id of the file -> its latest derived one
        self._numbers: dict[str, int] = {}  # an id of the file -> the number of its latest derived one

    @classmethod
    async def begin(cls, store: Store, key: ConversationKey, tally: Tally) -> Merge:
        """Return a merge into what the store has of the conversation now. `tally` is counted up."""
        merge = cls(store, key, tally)
        await merge._look()
        return merge

    async def is_foreign(self, first_id: str) -> bool:
        """Whether the store's conversation is another one than the file's, which begins with `first_id`."""
        return bool(self._heads) and not await self._store.find(self._key, (first_id,))

    def branch_of(self, branch: str) -> str:
        """Return the store's branch on which a path of the file ends."""
        return self._cursors[branch].branch

    def stored_id(self, message_id: str) -> str:
        """Return the id under which a message of the file is kept."""
        return self._renamed.get(message_id, message_id)

    async def declare(self, fork: Forked) -> Problem | None:
        """Begin a branch of the file. It comes to be in the store with its first new message."""
        cursor, problem = Cursor(name=fork.name), None
        if fork.after is not None:
            found = await self._store.find(self._key, (self.stored_id(fork.after),))
            if found:
                cursor = replace(_after(found[0]), name=fork.name)
            else:
                problem = Problem(
                    place=f"branch {fork.name!r}",
                    reason=f"it leaves message {fork.after!r}, which is not there; it was taken from the beginning",
                    cure="Repair the line or remove it.",
                )
        self._cursors[fork.name] = cursor
        return problem

    async def take(self, messages: Sequence[Message], branch: str) -> None:
        """Place the next messages of a path of the file."""
        cursor = self._cursors.setdefault(branch, Cursor(name=branch))
        for attempt in range(1, ATTEMPTS + 1):
            try:
                placed = await self._append_all(messages, cursor) or await self._place_each(messages, cursor)
            except VersionConflict:
                if attempt == ATTEMPTS:
                    raise
                await self._look()
            else:
                self._cursors[branch] = placed
                return

    async def _look(self) -> None:
        try:
            self._heads = {branch.name: branch for branch in await self._store.branches(self._key)}
        except NotFoundError:
            self._heads = {}

    # New messages

    async def _append_all(self, messages: Sequence[Message], cursor: Cursor) -> Cursor | None:
        """Append messages that are all new at the end of a branch, without looking for each; None when they are not."""
        if not self._at_end(cursor) or await self._store.find(self._key, (messages[0].id,)):
            return None
        try:
            return await self._append(messages, cursor)
        except DuplicateMessageError:
            return None

    def _at_end(self, cursor: Cursor) -> bool:
        """Whether nothing is said after the cursor on its branch; rows outside the chain may follow."""
        head = self._heads.get(cursor.branch)
        return cursor.name is None and (head is None or head.chain == cursor.chain)

    async def _append(self, messages: Sequence[Message], cursor: Cursor) -> Cursor:
        """Append new messages at the cursor, on a branch of their own where the log goes on with something else."""
        target = cursor.branch
        if self._heads and not self._at_end(cursor):
            target = await self._fork(cursor, messages[0].id)
        head = self._heads.get(target, Branch(name=target))
        entries = await self._store.append(self._key, messages, branch=target, expected_position=head.position)
        last = entries[-1]
        chained = sum(entry.seq is not None for entry in entries)
        self._heads[target] = replace(head, position=last.position, seq=head.seq + chained, chain=last.chain)
        self._tally.added += len(entries)
        return _after(last)

    async def _fork(self, cursor: Cursor, first_id: str) -> str:
        """Return a new branch that leaves the log at the cursor, or an empty one that an interrupted import left there."""
        name = cursor.name if cursor.name and cursor.name not in self._heads else branch_name(first_id)
        start, number = Branch(position=cursor.position, chain=cursor.chain), 1
        base = name
        while name in self._heads and not _is_empty_at(self._heads[name], start):
            number += 1
            name = f"{base}-{number}"
        if name not in self._heads:
            made = await self._store.fork(self._key, name, position=cursor.position, branch=cursor.branch)
            self._heads[name] = made
            self._tally.branches += 1
        return name

    # Messages that may be known

    async def _place_each(self, messages: Sequence[Message], cursor: Cursor) -> Cursor:
        """Place messages one by one: past those that are known, in runs those that are new."""
        known = await self._entries([message.id for message in messages])
        run: dict[str, Message] = {}
        for message in messages:
            if run and (message.id in known or message.id in run):
                cursor = await self._append(tuple(run.values()), cursor)
                known |= await self._entries(tuple(run))
                run = {}
            name, entry = message.id, known.get(message.id)
            if entry is not None:
                name, entry = await self._twin(message, entry, cursor)
            if entry is None:
                run[name] = message if name == message.id else replace(message, id=name)
                continue
            self._tally.known += 1
            cursor = cursor if self._holds(cursor, entry) else _after(entry)
        return await self._append(tuple(run.values()), cursor) if run else cursor

    async def _entries(self, ids: Iterable[str]) -> dict[str, LogEntry]:
        return {entry.message.id: entry for entry in await self._store.find(self._key, ids)}

    async def _twin(self, message: Message, entry: LogEntry, cursor: Cursor) -> tuple[str, LogEntry | None]:
        """Return the row that is this message on this path, or None and the derived id that is free for it."""
        number, name, here = self._numbers.get(message.id, 1), message.id, entry
        while not (_same(message, here.message) and (self._holds(cursor, here) or self._leads_to(cursor, here))):
            number += 1
            name = f"{message.id}~{number}"
            found = await self._store.find(self._key, (name,))
            if not found:
                self._note_derived(message.id, name, number)
                self._tally.changed += 1
                return name, None
            here = found[0]
        if name != message.id:
            self._note_derived(message.id, name, number)
        return name, here

    def _note_derived(self, message_id: str, name: str, number: int) -> None:
        self._renamed[message_id], self._numbers[message_id] = name, number

    def _leads_to(self, cursor: Cursor, entry: LogEntry) -> bool:
        """Whether the row stands on a path that passes the cursor."""
        return entry.position > cursor.position and (
            cursor.position == 0 or self._owner(entry.branch, cursor.position) == cursor.branch
        )

    def _holds(self, cursor: Cursor, entry: LogEntry) -> bool:
        """Whether the path up to the cursor holds the row: the file says the same message again."""
        return 0 < entry.position <= cursor.position and self._owner(cursor.branch, entry.position) == entry.branch

    def _owner(self, branch: str, position: int) -> str:
        """Return the branch that owns a row of a branch's path."""
        while (head := self._heads[branch]).parent is not None and position <= head.fork_position:
            branch = head.parent
        return branch


def _is_empty_at(branch: Branch, start: Branch) -> bool:
    at_start = branch.position == branch.fork_position == start.position and branch.chain == start.chain
    return at_start and branch.parent is not None


def _same(one: Message, other: Message) -> bool:
    """Whether two messages mean the same: how a reply ended or what it cost may become known later."""
    return one == other or (one.kind == other.kind and digest(one) == digest(other))
