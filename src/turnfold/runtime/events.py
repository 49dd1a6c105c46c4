"""What a caller needs to show that a compaction is going on, and to measure what requests take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from turnfold.core.plan import Trigger
from turnfold.core.reasons import Reason
from turnfold.messages.model import Usage
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


class RequestPrepared(msgspec.Struct, frozen=True, kw_only=True, tag="prepared"):
    """A request is ready, compacted or not: what it takes and what it cost. Tokens are of the whole request.

    `calls` were paid to a summarizer in `milliseconds`, using `usage` tokens.
    """

    outcome: Outcome
    persistence: Persistence
    tokens: int
    tokens_before: int
    input_budget: int
    calls: int
    milliseconds: int
    usage: Usage | None = None
    version: int | None = None


Event: TypeAlias = CompactionStarted | CompactionFinished | CompactionFailed | RequestPrepared
Listener: TypeAlias = Callable[[Event], None]


def events_of(prepared: Prepared) -> Iterator[Event]:
    """Yield what a prepared request tells: how its compaction ended, where one was tried, then the request itself."""
    if prepared.trigger is not None:
        yield _ending(prepared, prepared.trigger)
    yield RequestPrepared(
        outcome=prepared.outcome,
        persistence=prepared.persistence,
        tokens=prepared.tokens,
        tokens_before=prepared.tokens_before,
        input_budget=prepared.budget.input_budget,
        calls=prepared.calls,
        milliseconds=prepared.milliseconds,
        usage=prepared.usage,
        version=prepared.version,
    )


def _ending(prepared: Prepared, trigger: Trigger) -> Event:
    if prepared.outcome != "compacted":
        return CompactionFailed(trigger=trigger, outcome=prepared.outcome, reasons=prepared.reasons)
    return CompactionFinished(
        trigger=trigger,
        outcome=prepared.outcome,
        persistence=prepared.persistence,
        messages_before=prepared.messages_before,
        messages_after=prepared.messages_after,
        message_tokens_before=prepared.message_tokens_before,
        message_tokens_after=prepared.message_tokens_after,
        exact=prepared.exact,
    )
