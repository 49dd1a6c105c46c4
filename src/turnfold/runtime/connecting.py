"""Finds the newest checkpoint that is provably true of a carried history (SPEC §9)."""

from __future__ import annotations

from collections.abc import Callable

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
from turnfold.errors import StoreError
from turnfold.messages.model import Message
from turnfold.ports import CheckpointStore

PAGE = 8
MAX_LOOKED_AT = 32
"""Versions looked at for one that still holds; each request pays for this, so the search is bounded."""


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


class Connector:
    """Looks through one key's checkpoints, newest first."""

    def __init__(
        self,
        store: CheckpointStore,
        *,
        fingerprint: str,
        count_text: Callable[[str], int],
        max_summary_tokens: int,
    ) -> None:
        self._store, self._fingerprint = store, fingerprint
        self._count_text, self._max_summary_tokens = count_text, max_summary_tokens

    async def connect(self, key: CheckpointKey, history: tuple[Message, ...]) -> Connected:
        """Return the newest checkpoint that connects to the history. A store that fails makes the request unverifiable."""
        try:
            return await self._search(key, history)
        except StoreError as error:
            return Connected(verifiable=False, reasons=(Reason(code="read_failed", detail=str(error)),))

    async def _search(self, key: CheckpointKey, history: tuple[Message, ...]) -> Connected:
        reasons: list[Reason] = []
        changed: list[tuple[int, str]] = []
        verifiable, head, before, looked_at = True, 0, None, 0
        while looked_at < MAX_LOOKED_AT and (records := await self._store.newest(key, before=before, limit=PAGE)):
            head = head or records[0].version
            for record in records:
                connection = self._judge(record, history)
                validity = connection.validity
                if validity.status == "usable":
                    return Connected(
                        checkpoint=record.checkpoint,
                        uncovered_from=connection.uncovered_from,
                        head_version=head,
                        reasons=tuple(reasons),
                        changed=tuple(changed),
                        verifiable=verifiable,
                    )
                verifiable = verifiable and validity.status != "unverifiable"
                reasons.extend(_named(record, validity))
                if is_known_change(validity):
                    changed.append((record.version, validity.reasons[0].detail))
            before, looked_at = records[-1].version, looked_at + len(records)
        return Connected(head_version=head, reasons=tuple(reasons), changed=tuple(changed), verifiable=verifiable)

    def _judge(self, record: CheckpointRecord, history: tuple[Message, ...]) -> Connection:
        validity = validate_record(record, fingerprint=self._fingerprint)
        checkpoint = record.checkpoint
        if validity.status == "usable" and checkpoint and checkpoint.summary:
            validity = validate_size(self._count_text(checkpoint.summary), self._max_summary_tokens)
        if validity.status != "usable" or checkpoint is None:
            return Connection(validity=validity)
        return connect_carried(checkpoint.coverage, history)


def _named(record: CheckpointRecord, validity: Validity) -> tuple[Reason, ...]:
    return tuple(
        Reason(code=reason.code, detail=f"checkpoint {record.version}: {reason.detail}") for reason in validity.reasons
    )
