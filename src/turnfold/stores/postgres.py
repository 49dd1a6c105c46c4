"""PostgresStore: logs, checkpoints and state of any number of conversations in one PostgreSQL schema, for many machines.

An append is one statement that compares the branch's head with the one this process saw last and moves it; where that is out of date
the head is read and the append tried again. Nothing else is kept between operations, so any number of processes may share a schema.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Self

from turnfold.core.checkpoint import Checkpoint, CheckpointKey, CheckpointRecord
from turnfold.errors import InputError, StoreUnavailableError
from turnfold.messages.log import MAIN, Branch, ConversationInfo, ConversationKey, LogEntry, VerifyReport
from turnfold.messages.model import Message
from turnfold.ports import Changes
from turnfold.stores import postgres_log, postgres_records, postgres_verify
from turnfold.stores.paths import Head
from turnfold.stores.postgres_database import Connection, Database
from turnfold.stores.rows import (
    Prepared,
    encode_checkpoint,
    prepare,
    require_bounds,
    require_key,
    require_outside_chain,
    require_position,
    require_text,
)
from turnfold.stores.verification import Findings, report

HEADS: Final = 10_000
"""Heads of branches that a process remembers."""

RACES: Final = 50
"""Appends that may be lost to other writers of the same branch in a row."""


class PostgresStore:
    """A `Store` in one schema of a PostgreSQL database. Use it with `async with`.

    `conninfo` is an address as libpq takes it. `migrate` makes and updates the schema on entering; without it an older
    schema is refused. `pool_size` bounds the connections of this process. Times are in ms: `wait_ms` for a free
    connection, `statement_ms` for one statement, `lock_ms` for a lock. `now_ms` gives UTC milliseconds.
    """

    def __init__(
        self,
        conninfo: str,
        *,
        schema: str = "turnfold",
        migrate: bool = True,
        pool_size: int = 8,
        wait_ms: int = 10_000,
        statement_ms: int = 30_000,
        lock_ms: int = 10_000,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._database = Database(
            conninfo,
            schema=schema,
            pool_size=pool_size,
            wait_ms=wait_ms,
            statement_ms=statement_ms,
            lock_ms=lock_ms,
        )
        self._migrate, self._now_ms = migrate, now_ms
        self._heads: OrderedDict[tuple[ConversationKey, str], Head] = OrderedDict()

    async def __aenter__(self) -> Self:
        if self._database.is_open:
            raise InputError(f"the store {self._database.place} is already open. Enter it once.")
        await self._database.open(migrate=self._migrate)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._database.close()
        self._heads.clear()

    # -- heads ---------------------------------------------------------------------------------------------------

    def _remember(self, key: ConversationKey, head: Head) -> None:
        place = (key, head.node.name)
        self._heads[place] = head
        self._heads.move_to_end(place)
        if len(self._heads) > HEADS:
            self._heads.popitem(last=False)

    # -- the log -------------------------------------------------------------------------------------------------

    async def append(
        self,
        key: ConversationKey,
        messages: Sequence[Message],
        *,
        branch: str = MAIN,
        counts: Mapping[str, Sequence[int]] | None = None,
        expected_position: int | None = None,
    ) -> tuple[LogEntry, ...]:
        """As `MessageLog.append`. InputError, before anything is written, for a message that cannot be stored.

        When the connection breaks before the answer came (StoreUnavailableError, `gone`), the rows may be there or not: `find` tells.
        """
        require_key(key)
        rows = prepare(tuple(messages), counts)
        try:
            return await self._database.run(self._append, key, rows, branch=branch, expected_position=expected_position)
        except BaseException:
            self._heads.pop((key, branch), None)
            raise

    async def _append(
        self,
        db: Connection,
        key: ConversationKey,
        rows: Sequence[Prepared],
        *,
        branch: str,
        expected_position: int | None,
    ) -> tuple[LogEntry, ...]:
        if not rows:
            require_position(await postgres_log.end_of(db, key, branch), expected_position)
            return ()
        head = self._heads.get((key, branch))
        if head is not None and expected_position not in (None, head.branch.position):
            head = None  # whether ours or theirs is out of date, the database says
        for _ in range(RACES):
            added = await self._try_append(db, key, rows, head, branch=branch, expected_position=expected_position)
            if added is not None:
                self._remember(key, added[1])
                return added[0]
            head = None
        raise StoreUnavailableError("locked", f"{key}: other writers were faster {RACES} times")

    async def _try_append(
        self,
        db: Connection,
        key: ConversationKey,
        rows: Sequence[Prepared],
        head: Head | None,
        *,
        branch: str,
        expected_position: int | None,
    ) -> tuple[tuple[LogEntry, ...], Head] | None:
        """Append after a head (None: as the database has it); None when another writer was faster."""
        head = head or await postgres_log.find_head(db, key, branch)
        if head is None:  # a conversation that is yet to be comes to be with its first rows, or not at all
            async with db.raw.transaction():
                head = await postgres_log.make_head(db, key, branch, self._now_ms())
                require_position(head.branch, expected_position)
                return await postgres_log.add_rows(db, key, head, rows, self._now_ms())
        require_position(head.branch, expected_position)
        return await postgres_log.add_rows(db, key, head, rows, self._now_ms())

    async def read(
        self, key: ConversationKey, *, branch: str = MAIN, after: int = 0, limit: int | None = None
    ) -> tuple[LogEntry, ...]:
        """As `MessageLog.read`. CorruptRowError for a row that is damaged or missing."""
        require_bounds(limit)
        return await self._database.run(postgres_log.read, key, branch=branch, after=after, limit=limit)

    async def head(self, key: ConversationKey, *, branch: str = MAIN) -> Branch:
        """As `MessageLog.head`."""
        return (await self._database.run(postgres_log.head, key, branch=branch)).branch

    async def at_seq(self, key: ConversationKey, seq: int, *, branch: str = MAIN) -> LogEntry | None:
        """As `MessageLog.at_seq`."""
        return await self._database.run(postgres_log.at_seq, key, seq, branch=branch)

    async def find(self, key: ConversationKey, message_ids: Iterable[str]) -> tuple[LogEntry, ...]:
        """As `MessageLog.find`."""
        return await self._database.run(postgres_log.find, key, tuple(message_ids))

    async def fork(self, key: ConversationKey, name: str, *, position: int, branch: str = MAIN) -> Branch:
        """As `MessageLog.fork`. NotFoundError for a position beyond the branch's end."""
        require_text("branch name", name)
        return await self._database.transact(
            postgres_log.fork, key, name, position=position, branch=branch, now_ms=self._now_ms()
        )

    async def branches(self, key: ConversationKey) -> tuple[Branch, ...]:
        """As `MessageLog.branches`."""
        return await self._database.run(postgres_log.branches, key)

    async def save_counts(self, key: ConversationKey, counter: str, counts: Mapping[str, int]) -> None:
        """As `MessageLog.save_counts`; ids that are not there are left out."""
        require_text("counter name", counter)
        await self._database.transact(postgres_log.save_counts, key, counter, dict(counts))

    async def conversations(
        self, *, tenant: str = "", user: str | None = None, after: ConversationKey | None = None, limit: int = 100
    ) -> tuple[ConversationInfo, ...]:
        """As `MessageLog.conversations`; one that has only checkpoints or state is listed without branches."""
        require_bounds(limit)
        return await self._database.run(postgres_log.conversations, tenant=tenant, user=user, after=after, limit=limit)

    async def purge(self, key: ConversationKey) -> int:
        """As `MessageLog.purge`. Space is reused after the server's vacuum; backups and its write-ahead log keep their own time."""
        count = await self._database.transact(postgres_log.purge, key)
        for place in [place for place in self._heads if place[0] == key]:
            del self._heads[place]
        return count

    async def verify(self, key: ConversationKey | None = None) -> VerifyReport:
        """As `MessageLog.verify`, each conversation on its own snapshot. NotFoundError for no such key."""
        if key is not None:
            return report([await self._check(key)])
        findings: list[Findings] = []
        after: ConversationKey | None = None
        while page := await self._database.run(postgres_verify.list_keys, after):
            findings += [await self._check(each) for each in page]
            after = page[-1]
        return report(findings)

    async def _check(self, key: ConversationKey) -> Findings:
        return await self._database.snapshot(postgres_verify.check_conversation, key)

    # -- checkpoints and state -----------------------------------------------------------------------------------

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
        body = encode_checkpoint(key, checkpoint, expected_version)
        head = await self._database.transact(
            postgres_records.save,
            key,
            body,
            checkpoint.format,
            expected_version=expected_version,
            rows=prepare(rows),
            branch=branch,
            now_ms=self._now_ms(),
        )
        if head is not None:
            self._remember(key.conversation, head)
        return expected_version + 1

    async def head_version(self, key: CheckpointKey) -> int:
        """As `CheckpointStore.head_version`."""
        return await self._database.run(postgres_records.head_version, key)

    async def changes(self, key: CheckpointKey, *, branch: str = MAIN, after: int = 0) -> Changes:
        """As `Store.changes`: one statement, one snapshot. CorruptRowError as `read`."""
        return await self._database.run(postgres_log.changes, key, branch=branch, after=after)

    async def load(self, key: CheckpointKey, version: int) -> CheckpointRecord:
        """As `CheckpointStore.load`. CorruptRowError for a row that cannot be read."""
        return await self._database.run(postgres_records.load, key, version)

    async def newest(
        self, key: CheckpointKey, *, before: int | None = None, limit: int = 8
    ) -> tuple[CheckpointRecord, ...]:
        """As `CheckpointStore.newest`. CorruptRowError for a row that cannot be read."""
        require_bounds(limit)
        return await self._database.run(postgres_records.newest, key, before=before, limit=limit)

    async def invalidate(self, key: CheckpointKey, version: int, reason: str) -> None:
        """As `CheckpointStore.invalidate`; the first reason stays."""
        require_text("reason", reason)
        await self._database.run(postgres_records.invalidate, key, version, reason)

    async def get_state(self, key: ConversationKey, name: str) -> tuple[int, bytes]:
        """As `StateStore.get_state`."""
        return await self._database.run(postgres_records.get_state, key, name)

    async def put_state(self, key: ConversationKey, name: str, document: bytes, *, expected_version: int) -> int:
        """As `StateStore.put_state`."""
        require_key(key)
        require_text("state name", name)
        return await self._database.run(
            postgres_records.put_state,
            key,
            name,
            document,
            expected_version=expected_version,
            now_ms=self._now_ms(),
        )
