"""Checkpoint writes with a time limit each, and the truth about what became of them (SPEC §9)."""

from __future__ import annotations

import asyncio

from turnfold.core.checkpoint import Checkpoint, CheckpointKey
from turnfold.core.reasons import Reason
from turnfold.errors import StoreUnavailableError, TurnfoldError, VersionConflict
from turnfold.ports import CheckpointStore
from turnfold.runtime.decision import Persistence

DEFAULT_LIMIT_MS = 2_000
READ_BACK_MS = 2_000
INVALIDATED = "invalidated"
"""Code of the reason that says that a version is marked."""


class TimedWrites:
    """Writes checkpoints within `limit_ms` each; None is the default limit, without a read-back.

    With a limit of the caller's own, a write that timed out or lost its connection is looked for once. An uncertain write is
    never repeated.
    """

    def __init__(self, store: CheckpointStore, *, limit_ms: int | None = None) -> None:
        self._store, self._read_back = store, limit_ms is not None
        self._seconds = (DEFAULT_LIMIT_MS if limit_ms is None else limit_ms) / 1000

    async def save(
        self, key: CheckpointKey, checkpoint: Checkpoint, *, expected_version: int
    ) -> tuple[Persistence, tuple[Reason, ...]]:
        """Save and say what is known: saved, conflict, failed or unknown, with the reason."""
        try:
            async with asyncio.timeout(self._seconds):
                await self._store.save(key, checkpoint, expected_version=expected_version)
        except TimeoutError:
            code, problem = "write_timeout", f"the write took longer than {self._seconds * 1000:.0f} ms"
            return await self._uncertain(key, checkpoint, code, problem)
        except VersionConflict as error:
            return "conflict", (Reason(code="conflict", detail=str(error)),)
        except TurnfoldError as error:
            if _is_uncertain(error):
                return await self._uncertain(key, checkpoint, "write_uncertain", str(error))
            return "failed", (Reason(code="store", detail=str(error)),)
        return "saved", ()

    async def _uncertain(
        self, key: CheckpointKey, checkpoint: Checkpoint, code: str, problem: str
    ) -> tuple[Persistence, tuple[Reason, ...]]:
        if self._read_back and await self._is_stored(key, checkpoint):
            return "saved", (Reason(code="read_back", detail=f"{problem}; reading back shows that it was made"),)
        return "unknown", (Reason(code=code, detail=f"{problem}; it may or may not be made"),)

    async def _is_stored(self, key: CheckpointKey, checkpoint: Checkpoint) -> bool:
        """One bounded look: version, parent and the whole content must be equal."""
        try:
            async with asyncio.timeout(READ_BACK_MS / 1000):
                record = await self._store.load(key, checkpoint.version)
        except (TimeoutError, TurnfoldError):
            return False
        return record.checkpoint == checkpoint

    async def invalidate(self, key: CheckpointKey, version: int, why: str) -> Reason:
        """Mark a version unusable, within a limit of its own, and say what is known of it."""
        try:
            async with asyncio.timeout(self._seconds):
                await self._store.invalidate(key, version, why)
        except TimeoutError:
            return Reason(code="invalidation_unknown", detail=f"checkpoint {version}: marking it took too long")
        except TurnfoldError as error:
            code = "invalidation_unknown" if _is_uncertain(error) else "invalidation_failed"
            return Reason(code=code, detail=f"checkpoint {version}: {error}")
        return Reason(code=INVALIDATED, detail=f"checkpoint {version}: {why}")


def _is_uncertain(error: TurnfoldError) -> bool:
    """Whether a write that failed so may have been made all the same: its answer was lost with the connection."""
    return isinstance(error, StoreUnavailableError) and error.reason == "gone"
