"""Finds the newest checkpoint that is provably true of a carried history (SPEC §9)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from turnfold.core.checkpoint import Checkpoint, CheckpointKey, CheckpointRecord
from turnfold.core.reasons import Reason
from turnfold.core.validation import (
    Connection,
    Validity,
    connect_carried,
    is_known_change,
    validate_record,
    validate_size,
)
from turnfold.errors import CorruptRowError, StoreError
from turnfold.messages.canonical import digest
from turnfold.messages.model import Message
from turnfold.ports import CheckpointStore

PAGE = 8
"""Versions read at a time, after the newest one, which mostly holds."""

MAX_LOOKED_AT = 32
"""Versions looked at for one that still holds; each request pays for this, so the search is bounded."""

READ_MS = 2_000
"""How long a request waits for its checkpoints; then it goes on without."""


class Connected(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. `uncovered_from` is the index of the first message after the coverage, `changed` the versions that
    a known change made unusable, with the reason. `verifiable` False forbids writing in this request.
    """

    checkpoint: Checkpoint | None = None
    uncovered_from: int = 0
    head_version: int = 0
    reasons: tuple[Reason, ...] = ()
    changed: tuple[tuple[int, str], ...] = ()
    verifiable: bool = True


class _Unreadable(msgspec.Struct, frozen=True, kw_only=True):
    """A version whose row is corrupt."""

    version: int
    detail: str


_Found: TypeAlias = CheckpointRecord | _Unreadable


class Connector:
    """Looks through one key's checkpoints, newest first. `fingerprint` None says that the configuration is not known."""

    def __init__(
        self,
        store: CheckpointStore,
        *,
        fingerprint: str | None,
        count_text: Callable[[str], int],
        max_summary_tokens: int,
        digest_of: Callable[[Message], str] = digest,
    ) -> None:
        self._store, self._fingerprint, self._digest_of = store, fingerprint, digest_of
        self._count_text, self._max_summary_tokens = count_text, max_summary_tokens

    async def connect(self, key: CheckpointKey, history: tuple[Message, ...]) -> Connected:
        """Return the newest checkpoint that connects to the history. A store that fails makes the request unverifiable."""
        try:
            async with asyncio.timeout(READ_MS / 1000):
                return await self._search(key, history)
        except StoreError as error:
            return _unread(str(error))
        except TimeoutError:
            return _unread(f"the store did not answer within {READ_MS} ms")

    async def _search(self, key: CheckpointKey, history: tuple[Message, ...]) -> Connected:
        reasons: list[Reason] = []
        changed: list[tuple[int, str]] = []
        head = looked_at = 0
        before: int | None = None
        verifiable = self._fingerprint is not None
        while looked_at < MAX_LOOKED_AT and (page := await self._page(key, before, PAGE if head else 1)):
            head = head or page[0].version
            for found in page:
                connection = self._judge(found, history)
                if connection.validity.status == "usable" and isinstance(found, CheckpointRecord):
                    return Connected(
                        checkpoint=found.checkpoint,
                        uncovered_from=connection.uncovered_from,
                        head_version=head,
                        reasons=tuple(reasons),
                        changed=tuple(changed),
                        verifiable=verifiable,
                    )
                verifiable = verifiable and connection.validity.status != "unverifiable"
                reasons.extend(_named(found, connection.validity))
                changed.extend(_change(found, connection.validity))
            before, looked_at = page[-1].version, looked_at + len(page)
        return Connected(head_version=head, reasons=tuple(reasons), changed=tuple(changed), verifiable=verifiable)

    async def _page(self, key: CheckpointKey, before: int | None, limit: int) -> Sequence[_Found]:
        """Return versions newest first. Where one cannot be read the others still are: an older one may serve this turn."""
        try:
            return await self._store.newest(key, before=before, limit=limit)
        except CorruptRowError:
            newest = await self._store.head_version(key) if before is None else before - 1
            return [await self._one(key, version) for version in range(newest, max(0, newest - limit), -1)]

    async def _one(self, key: CheckpointKey, version: int) -> _Found:
        try:
            return await self._store.load(key, version)
        except CorruptRowError as error:
            return _Unreadable(version=version, detail=str(error))

    def _judge(self, found: _Found, history: tuple[Message, ...]) -> Connection:
        if isinstance(found, _Unreadable):
            reason = Reason(code="read_failed", detail=found.detail)
            return Connection(validity=Validity(status="unverifiable", reasons=(reason,)))
        validity = validate_record(found, fingerprint=self._fingerprint)
        checkpoint = found.checkpoint
        if validity.status == "usable" and checkpoint and checkpoint.summary:
            validity = validate_size(self._count_text(checkpoint.summary), self._max_summary_tokens)
        if validity.status != "usable" or checkpoint is None:
            return Connection(validity=validity)
        return connect_carried(checkpoint.coverage, history, digest_of=self._digest_of)


def _unread(why: str) -> Connected:
    return Connected(verifiable=False, reasons=(Reason(code="read_failed", detail=why),))


def _named(found: _Found, validity: Validity) -> Iterator[Reason]:
    for reason in validity.reasons:
        yield Reason(code=reason.code, detail=f"checkpoint {found.version}: {reason.detail}")


def _change(found: _Found, validity: Validity) -> Iterator[tuple[int, str]]:
    if is_known_change(validity):
        yield found.version, validity.reasons[0].detail
