"""SqliteStore: logs, checkpoints and state of any number of conversations in one SQLite file.

Every operation is one synchronous function, a whole transaction, in the store's own thread. A caller that is cancelled
leaves either an operation that never started or one that runs to its end; a transaction is never left open. Any number of
processes may have the file open.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Concatenate, Final, ParamSpec, Self, TypeVar

from turnfold.core.checkpoint import Checkpoint, CheckpointKey, CheckpointRecord
from turnfold.errors import InputError, StoreUnavailableError
from turnfold.messages.log import MAIN, Branch, ConversationInfo, ConversationKey, LogEntry, VerifyReport
from turnfold.messages.model import Message
from turnfold.ports import Changes
from turnfold.stores import sqlite_log, sqlite_records, sqlite_verify
from turnfold.stores.foreign_errors import FOREIGN, map_error
from turnfold.stores.rows import (
    encode_checkpoint,
    prepare,
    require_bounds,
    require_key,
    require_outside_chain,
    require_text,
)
from turnfold.stores.sqlite_file import Access, open_file, rewrite, transaction
from turnfold.stores.verification import report
from turnfold.stores.worker import Worker

P = ParamSpec("P")
T = TypeVar("T")

LIBRARY_VERSION: Final = sqlite3.sqlite_version
"""Of the SQLite library itself."""


class SqliteStore:
    """A `Store` in one SQLite file. Use it with `async with`; it may be entered again after it was left.

    `path` is the file; its folder must be there. With `read_only` a missing file is an error and nothing is ever written.
    `busy_timeout_ms` is how long an operation waits for other processes before StoreUnavailableError (`locked`).
    `vacuum_after_purge` rewrites the file after each purge; without it, call `vacuum` when the store is idle.
    `now_ms` gives UTC milliseconds.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
        busy_timeout_ms: int = 10_000,
        vacuum_after_purge: bool = True,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.path = Path(path)
        if self.path.name in ("", ":memory:"):
            raise InputError(f"{os.fspath(path)!r} is no file. Give a path, or use MemoryStore.")
        self.read_only = read_only
        self._busy_timeout_ms = busy_timeout_ms
        self._vacuum_after_purge = vacuum_after_purge
        self._now_ms = now_ms
        self._worker = Worker("turnfold-sqlite")
        self._connection: sqlite3.Connection | None = None

    async def __aenter__(self) -> Self:
        if self._worker.running:
            raise InputError(f"the store {self.path} is already open. Enter it once.")
        self._worker.start()
        try:
            await self._in_thread(self._open)
        except BaseException:
            await self._worker.stop(self._close)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._worker.stop(self._close)

    def _open(self) -> None:
        self._connection = open_file(self.path, read_only=self.read_only, busy_timeout_ms=self._busy_timeout_ms)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _in_thread(self, operation: Callable[[], T]) -> T:
        if not self._worker.running:
            raise StoreUnavailableError("gone", f"{self.path} is not open; use `async with`")
        return await self._worker.run(lambda: self._mapped(operation))

    def _mapped(self, operation: Callable[[], T]) -> T:
        try:
            return operation()
        except FOREIGN as error:
            raise map_error(error, self.path) from error

    def _transaction(
        self,
        access: Access,
        operation: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run an operation as one transaction. In the store's thread."""
        connection = self._open_connection()
        with transaction(connection, access):
            return operation(connection, *args, **kwargs)

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreUnavailableError("gone", f"{self.path} was closed")
        return self._connection

    async def _read(
        self, operation: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._in_thread(lambda: self._transaction("read", operation, *args, **kwargs))

    async def _write(
        self, operation: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._in_thread(lambda: self._transaction("write", operation, *args, **kwargs))

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
        messages = tuple(messages)

        def whole() -> tuple[LogEntry, ...]:
            rows = prepare(messages, counts)  # before the lock is taken, and not in the caller's thread
            return self._transaction(
                "write",
                sqlite_log.append,
                key,
                rows,
                branch=branch,
                expected_position=expected_position,
                now_ms=self._now_ms(),
            )

        return await self._in_thread(whole)

    async def read(
        self, key: ConversationKey, *, branch: str = MAIN, after: int = 0, limit: int | None = None
    ) -> tuple[LogEntry, ...]:
        """As `MessageLog.read`. CorruptRowError for a row that is damaged or missing."""
        require_bounds(limit)
        return await self._read(sqlite_log.read, key, branch=branch, after=after, limit=limit)

    async def head(self, key: ConversationKey, *, branch: str = MAIN) -> Branch:
        """As `MessageLog.head`."""
        return await self._read(sqlite_log.head, key, branch=branch)

    async def at_seq(self, key: ConversationKey, seq: int, *, branch: str = MAIN) -> LogEntry | None:
        """As `MessageLog.at_seq`: one index look-up, after one for each branch between the leaf and the row's owner."""
        return await self._read(sqlite_log.at_seq, key, seq, branch=branch)

    async def find(self, key: ConversationKey, message_ids: Iterable[str]) -> tuple[LogEntry, ...]:
        """As `MessageLog.find`."""
        return await self._read(sqlite_log.find, key, tuple(message_ids))

    async def fork(self, key: ConversationKey, name: str, *, position: int, branch: str = MAIN) -> Branch:
        """As `MessageLog.fork`. NotFoundError for a position beyond the branch's end."""
        require_text("branch name", name)
        return await self._write(sqlite_log.fork, key, name, position=position, branch=branch, now_ms=self._now_ms())

    async def branches(self, key: ConversationKey) -> tuple[Branch, ...]:
        """As `MessageLog.branches`."""
        return await self._read(sqlite_log.branches, key)

    async def save_counts(self, key: ConversationKey, counter: str, counts: Mapping[str, int]) -> None:
        """As `MessageLog.save_counts`; ids that are not there are left out."""
        require_text("counter name", counter)
        await self._write(sqlite_log.save_counts, key, counter, dict(counts))

    async def conversations(
        self, *, tenant: str = "", user: str | None = None, after: ConversationKey | None = None, limit: int = 100
    ) -> tuple[ConversationInfo, ...]:
        """As `MessageLog.conversations`; one that has only checkpoints or state is listed without branches."""
        require_bounds(limit)
        return await self._read(sqlite_log.conversations, tenant=tenant, user=user, after=after, limit=limit)

    async def purge(self, key: ConversationKey) -> int:
        """As `MessageLog.purge`. Then, with `vacuum_after_purge`, the file is rewritten: see `vacuum`."""
        count = await self._write(sqlite_log.purge, key)
        if self._vacuum_after_purge:
            await self.vacuum()
        return count

    async def vacuum(self) -> None:
        """Rewrite the file without what was removed: overwriting freed pages alone can leave pieces of moved rows.

        Takes time and disk space in proportion to the file, and keeps other writers waiting. Raises StoreUnavailableError
        when the file could not be rewritten, or another process still reads what was removed; call it again then.
        """
        await self._in_thread(self._vacuum)

    def _vacuum(self) -> None:
        try:
            rewrite(self._open_connection())
        except FOREIGN as error:
            mapped = map_error(error, self.path)
            reason = mapped.reason if isinstance(mapped, StoreUnavailableError) else "failed"
            raise StoreUnavailableError(
                reason, f"{self.path} may still hold pieces of what was removed: {error}"
            ) from error

    async def verify(self, key: ConversationKey | None = None) -> VerifyReport:
        """As `MessageLog.verify`; without a key the file's own structure is checked too. NotFoundError for no such key."""
        if key is not None:
            return report([await self._read(sqlite_verify.check_conversation, key)])
        damage = await self._read(sqlite_verify.check_file)
        findings = []
        after = 0
        while page := await self._read(sqlite_verify.list_keys, after):
            findings += [await self._read(sqlite_verify.check_conversation, each) for _, each in page]
            after, _ = page[-1]
        return report(findings, damage)

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
        return await self._write(
            sqlite_records.save,
            key,
            body,
            checkpoint.format,
            expected_version=expected_version,
            rows=prepare(rows),
            branch=branch,
            now_ms=self._now_ms(),
        )

    async def head_version(self, key: CheckpointKey) -> int:
        """As `CheckpointStore.head_version`."""
        return await self._read(sqlite_records.head_version, key)

    async def changes(self, key: CheckpointKey, *, branch: str = MAIN, after: int = 0) -> Changes:
        """As `Store.changes`: three index look-ups when nothing happened. CorruptRowError as `read`."""
        return await self._read(sqlite_records.changes, key, branch=branch, after=after)

    async def load(self, key: CheckpointKey, version: int) -> CheckpointRecord:
        """As `CheckpointStore.load`. CorruptRowError for a row that cannot be read."""
        return await self._read(sqlite_records.load, key, version)

    async def newest(
        self, key: CheckpointKey, *, before: int | None = None, limit: int = 8
    ) -> tuple[CheckpointRecord, ...]:
        """As `CheckpointStore.newest`. CorruptRowError for a row that cannot be read."""
        require_bounds(limit)
        return await self._read(sqlite_records.newest, key, before=before, limit=limit)

    async def invalidate(self, key: CheckpointKey, version: int, reason: str) -> None:
        """As `CheckpointStore.invalidate`; the first reason stays."""
        require_text("reason", reason)
        await self._write(sqlite_records.invalidate, key, version, reason)

    async def get_state(self, key: ConversationKey, name: str) -> tuple[int, bytes]:
        """As `StateStore.get_state`."""
        return await self._read(sqlite_records.get_state, key, name)

    async def put_state(self, key: ConversationKey, name: str, document: bytes, *, expected_version: int) -> int:
        """As `StateStore.put_state`."""
        require_key(key)
        require_text("state name", name)
        return await self._write(
            sqlite_records.put_state,
            key,
            name,
            document,
            expected_version=expected_version,
            now_ms=self._now_ms(),
        )
