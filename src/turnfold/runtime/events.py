"""What a caller needs to show that a compaction is going on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from turnfold.core.plan import Trigger
from turnfold.core.reasons import Reason
from turnfold.runtime.decision import Outcome, Persistence, Prepared


class CompactionStarted(msgspec.Struct, frozen=True, kw_only=True, tag="started"):
    """A compaction is about to be tried. Tokens are of the whole request as it is now."""

    trigger: Trigger
    messages: int
    tokens: int


class CompactionFinished(msgspec.Struct, frozen=True, kw_only=True, tag="finished"):
    """A compaction was adopted. Messages and message tokens are those in view beside the fixed prompt and tools."""

    trigger: Trigger
    outcome: Outcome
    persistence: Persistence
    messages_before: int
    messages_after: int
    message_tokens_before: int
    message_tokens_after: int
    exact: bool


class CompactionFailed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """No compaction was adopted; the old view stands, or this turn's view was trimmed."""

    trigger: Trigger
    outcome: Outcome
    reasons: tuple[Reason, ...]


Event: TypeAlias = CompactionStarted | CompactionFinished | CompactionFailed
Listener: TypeAlias = Callable[[Event], None]


def ending(prepared: Prepared) -> Event | None:
    """Return how the compaction behind a prepared request ended, or None when none was tried."""
    if prepared.trigger is None:
        return None
    if prepared.outcome != "compacted":
        return CompactionFailed(trigger=prepared.trigger, outcome=prepared.outcome, reasons=prepared.reasons)
    return CompactionFinished(
        trigger=prepared.trigger,
        outcome=prepared.outcome,
        persistence=prepared.persistence,
        messages_before=prepared.messages_before,
        messages_after=prepared.messages_after,
        message_tokens_before=prepared.message_tokens_before,
        message_tokens_after=prepared.message_tokens_after,
        exact=prepared.exact,
    )
