"""FaultyStore: any store, made to fail, hang or answer late on purpose, call by call.

It is how the rest of turnfold shows what it does when a store fails: before a write, after a write was committed (the
writer does not know), or too slowly.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from turnfold.core.checkpoint import Checkpoint, CheckpointKey, CheckpointRecord
from turnfold.errors import StoreUnavailableError
from turnfold.messages.log import MAIN, Branch, ConversationInfo, ConversationKey, LogEntry, VerifyReport
from turnfold.messages.model import Message
from turnfold.ports import Changes, Store

T = TypeVar("T")


def gone() -> StoreUnavailableError:
    """Return the error of a store that cannot be reached."""
    return StoreUnavailableError("gone", "injected fault")


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to some calls of one operation (a method's name, or "*" for any).

    `calls` are the numbers of its calls, from 1, that are hit (None: every one). In order: wait `delay_s` seconds, raise
    `before()`, do the operation, wait `late_s` seconds, raise `after()`; whatever is left out does not happen.
    """

    operation: str
    calls: Collection[int] | None = None
    delay_s: float = 0.0
    before: Callable[[], BaseException] | None = None
    late_s: float = 0.0
    after: Callable[[], BaseException] | None = None

    def hits(self, operation: str, call: int) -> bool:
        """Whether this fault happens to call number `call` of an operation."""
        return self.operation in (operation, "*") and (self.calls is None or call in self.calls)


def fail_before(operation: str, *calls: int, error: Callable[[], BaseException] = gone) -> Fault:
    """Fail without having done anything. Without `calls`: every time."""
    return Fault(operation=operation, calls=calls or None, before=error)


def fail_after(operation: str, *calls: int, error: Callable[[], BaseException] = gone) -> Fault:
    """Fail although it was done and is durable. Without `calls`: every time."""
    return Fault(operation=operation, calls=calls or None, after=error)


def delay(operation: str, seconds: float, *calls: int) -> Fault:
    """Wait before doing it. Without `calls`: every time."""
    return Fault(operation=operation, calls=calls or None, delay_s=seconds)


def answer_late(operation: str, seconds: float, *calls: int) -> Fault:
    """Do it at once and answer late. Without `calls`: every time."""
    return Fault(operation=operation, calls=calls or None, late_s=seconds)


class FaultyStore:
    """A `Store` that hands every call to `store`, with `faults` on the way. `calls` counts calls by operation.

    Change `faults` at any time; `sleep` stands for waiting, so a test can use a clock of its own.
    """

    def __init__(self, store: Store, *faults: Fault, sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep) -> None:
        self.store = store
        self.faults = list(faults)
        self.calls: Counter[str] = Counter()
        self._sleep = sleep

    async def _through(self, operation: str, call: Callable[[], Awaitable[T]]) -> T:
        self.calls[operation] += 1
        hitting = [fault for fault in self.faults if fault.hits(operation, self.calls[operation])]
        await self._strike((fault.delay_s, fault.before) for fault in hitting)
        answer = await call()
        await self._strike((fault.late_s, fault.after) for fault in hitting)
        return answer

    async def _strike(self, blows: Iterable[tuple[float, Callable[[], BaseException] | None]]) -> None:
        for seconds, error in blows:
            if seconds:
                await self._sleep(seconds)
            if error is not None:
                raise error()

    async def append(
        self,
        key: ConversationKey,
        messages: Sequence[Message],
        *,
        branch: str = MAIN,
        counts: Mapping[str, Sequence[int]] | None = None,
        expected_position: int | None = None,
    ) -> tuple[LogEntry, ...]:
        """As `MessageLog.append`."""
        return await self._through(
            "append",
            lambda: self.store.append(key, messages, branch=branch, counts=counts, expected_position=expected_position),
        )

    async def read(
        self, key: ConversationKey, *, branch: str = MAIN, after: int = 0, limit: int | None = None
    ) -> tuple[LogEntry, ...]:
        """As `MessageLog.read`."""
        return await self._through("read", lambda: self.store.read(key, branch=branch, after=after, limit=limit))

    async def head(self, key: ConversationKey, *, branch: str = MAIN) -> Branch:
        """As `MessageLog.head`."""
        return await self._through("head", lambda: self.store.head(key, branch=branch))

    async def at_seq(self, key: ConversationKey, seq: int, *, branch: str = MAIN) -> LogEntry | None:
        """As `MessageLog.at_seq`."""
        return await self._through("at_seq", lambda: self.store.at_seq(key, seq, branch=branch))

    async def find(self, key: ConversationKey, message_ids: Iterable[str]) -> tuple[LogEntry, ...]:
        """As `MessageLog.find`."""
        return await self._through("find", lambda: self.store.find(key, message_ids))

    async def fork(self, key: ConversationKey, name: str, *, position: int, branch: str = MAIN) -> Branch:
        """As `MessageLog.fork`."""
        return await self._through("fork", lambda: self.store.fork(key, name, position=position, branch=branch))

    async def branches(self, key: ConversationKey) -> tuple[Branch, ...]:
        """As `MessageLog.branches`."""
        return await self._through("branches", lambda: self.store.branches(key))

    async def save_counts(self, key: ConversationKey, counter: str, counts: Mapping[str, int]) -> None:
        """As `MessageLog.save_counts`."""
        await self._through("save_counts", lambda: self.store.save_counts(key, counter, counts))

    async def conversations(
        self, *, tenant: str = "", user: str | None = None, after: ConversationKey | None = None, limit: int = 100
    ) -> tuple[ConversationInfo, ...]:
        """As `MessageLog.conversations`."""
        return await self._through(
            "conversations",
            lambda: self.store.conversations(tenant=tenant, user=user, after=after, limit=limit),
        )

    async def purge(self, key: ConversationKey) -> int:
        """As `MessageLog.purge`."""
        return await self._through("purge", lambda: self.store.purge(key))

    async def verify(self, key: ConversationKey | None = None) -> VerifyReport:
        """As `MessageLog.verify`."""
        return await self._through("verify", lambda: self.store.verify(key))

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
        return await self._through(
            "save",
            lambda: self.store.save(key, checkpoint, expected_version=expected_version, rows=rows, branch=branch),
        )

    async def head_version(self, key: CheckpointKey) -> int:
        """As `CheckpointStore.head_version`."""
        return await self._through("head_version", lambda: self.store.head_version(key))

    async def changes(self, key: CheckpointKey, *, branch: str = MAIN, after: int = 0) -> Changes:
        """As `Store.changes`."""
        return await self._through("changes", lambda: self.store.changes(key, branch=branch, after=after))

    async def load(self, key: CheckpointKey, version: int) -> CheckpointRecord:
        """As `CheckpointStore.load`."""
        return await self._through("load", lambda: self.store.load(key, version))

    async def newest(
        self, key: CheckpointKey, *, before: int | None = None, limit: int = 8
    ) -> tuple[CheckpointRecord, ...]:
        """As `CheckpointStore.newest`."""
        return await self._through("newest", lambda: self.store.newest(key, before=before, limit=limit))

    async def invalidate(self, key: CheckpointKey, version: int, reason: str) -> None:
        """As `CheckpointStore.invalidate`."""
        await self._through("invalidate", lambda: self.store.invalidate(key, version, reason))

    async def get_state(self, key: ConversationKey, name: str) -> tuple[int, bytes]:
        """As `StateStore.get_state`."""
        return await self._through("get_state", lambda: self.store.get_state(key, name))

    async def put_state(self, key: ConversationKey, name: str, document: bytes, *, expected_version: int) -> int:
        """As `StateStore.put_state`."""
        return await self._through(
            "put_state", lambda: self.store.put_state(key, name, document, expected_version=expected_version)
        )
