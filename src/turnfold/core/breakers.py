"""Two breakers per conversation: one for failing compactions, one for compactions that save nothing (SPEC §8).

While one is open no model is called. It half-opens after some closed turns, on a change of configuration or on a manual
compaction, and one success closes it. The state is a value; sessions store it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from turnfold.core.plan import Trigger

MAX_FAILURES = 3
MAX_NO_SAVING = 2
HALF_OPEN_TURNS = 8
Verdict: TypeAlias = Literal["none", "succeeded", "failed", "saved_nothing"]
UNCOUNTED: frozenset[Trigger] = frozenset({"manual", "advance"})


class Breaker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Failures and savings in a row. `opened_at` is the number of closed turns when it opened, None while closed."""

    failures: int = 0
    no_saving: int = 0
    opened_at: int | None = None
    configuration: str = ""

    def allows(self, trigger: Trigger, turns: int, configuration: str) -> bool:
        """Whether a model may be called now, `turns` closed turns into the conversation."""
        if self.opened_at is None or trigger == "manual" or configuration != self.configuration:
            return True
        return turns - self.opened_at >= HALF_OPEN_TURNS

    def failed(self, trigger: Trigger, turns: int, configuration: str) -> Breaker:
        """Return the breaker after a compaction in which no summary was adopted."""
        return self._count(trigger, turns, configuration, self.failures + 1, self.no_saving)

    def saved_nothing(self, trigger: Trigger, turns: int, configuration: str) -> Breaker:
        """Return the breaker after a summary that was refused because it saved too little."""
        return self._count(trigger, turns, configuration, self.failures, self.no_saving + 1)

    def succeeded(self) -> Breaker:
        """Return the breaker after an adopted compaction: closed."""
        return Breaker()

    def after(self, verdict: Verdict, trigger: Trigger, turns: int, configuration: str) -> Breaker:
        """Return the breaker after the summarizer did as `verdict` says."""
        match verdict:
            case "none":
                return self
            case "succeeded":
                return self.succeeded()
            case "failed":
                return self.failed(trigger, turns, configuration)
            case "saved_nothing":
                return self.saved_nothing(trigger, turns, configuration)

    def _count(self, trigger: Trigger, turns: int, configuration: str, failures: int, no_saving: int) -> Breaker:
        if trigger in UNCOUNTED:
            return self
        half_open = self.opened_at is not None
        is_open = half_open or failures >= MAX_FAILURES or no_saving >= MAX_NO_SAVING
        return Breaker(
            failures=failures,
            no_saving=no_saving,
            opened_at=turns if is_open else None,
            configuration=configuration,
        )
