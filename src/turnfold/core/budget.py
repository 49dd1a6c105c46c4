"""Token arithmetic of one request: how large it may be, and when to compact (SPEC §4)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from turnfold.errors import ConfigError, ContextOverflowError, FloorError

TRIGGER_RATIO = 0.8
DEFAULT_RESERVE = 16_384
DEFAULT_RESERVE_SHARE = 0.2
MARGIN_SHARE_EXACT, MARGIN_SHARE_ESTIMATE = 0.02, 0.05
SUMMARY_SHARE = 0.1
"""Session defaults of SPEC §4: shares are of the context window."""


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one request, in tokens. `context_window` is the model's, `output_reserve` this turn's maximum output."""

    context_window: int
    output_reserve: int = 0
    safety_margin: int = 0
    trigger_ratio: float = TRIGGER_RATIO

    @property
    def input_budget(self) -> int:
        """What the request may take: window less output reserve less safety margin."""
        return self.context_window - self.output_reserve - self.safety_margin

    @property
    def trigger_line(self) -> int:
        """Above this many tokens a compaction is tried."""
        return math.floor(self.input_budget * self.trigger_ratio)


def budget_problems(budget: Budget) -> tuple[str, ...]:
    """Return what is wrong with a budget, one sentence each, empty when it can be used."""
    problems = []
    if budget.context_window <= 0:
        problems.append(f"context_window: {budget.context_window} is not positive. Give the model's window in tokens.")
    if budget.output_reserve < 0:
        problems.append(f"output_reserve: {budget.output_reserve} is negative. Give 0 or more tokens.")
    if budget.safety_margin < 0:
        problems.append(f"safety_margin: {budget.safety_margin} is negative. Give 0 or more tokens.")
    if not 0 < budget.trigger_ratio < 1:
        problems.append(
            f"trigger_ratio: {budget.trigger_ratio} is not between 0 and 1. The default is {TRIGGER_RATIO}."
        )
    if not problems and budget.input_budget <= 0:
        problems.append(
            f"output_reserve {budget.output_reserve} and safety_margin {budget.safety_margin} leave nothing of the "
            f"context_window {budget.context_window}. Lower them or use a larger window."
        )
    return tuple(problems)


def session_budget(
    context_window: int,
    *,
    exact: bool,
    max_output: int | None = None,
    output_reserve: int | None = None,
    safety_margin: int | None = None,
    trigger_ratio: float = TRIGGER_RATIO,
) -> Budget:
    """Return a session's budget; what is not given takes the defaults of SPEC §4.

    `exact` says whether the counter is the model's own, `max_output` is the model's configured maximum output. Raises
    ConfigError, naming every value that cannot be used.
    """
    share = MARGIN_SHARE_EXACT if exact else MARGIN_SHARE_ESTIMATE
    reserve = (
        max_output if max_output is not None else min(DEFAULT_RESERVE, int(context_window * DEFAULT_RESERVE_SHARE))
    )
    budget = Budget(
        context_window=context_window,
        output_reserve=reserve if output_reserve is None else output_reserve,
        safety_margin=int(context_window * share) if safety_margin is None else safety_margin,
        trigger_ratio=trigger_ratio,
    )
    if problems := budget_problems(budget):
        raise ConfigError(problems)
    return budget


def corrected(budget: Budget, factor: float) -> Budget:
    """Return the budget in our tokens, when the provider counts `factor` times as many as we do (SPEC §3, anchoring)."""
    if factor == 1.0:
        return budget
    return with_input_budget(budget, math.floor(budget.input_budget / factor))


def with_input_budget(budget: Budget, input_budget: int) -> Budget:
    """Return the budget with its window moved so that the request may take `input_budget` tokens."""
    window = input_budget + budget.output_reserve + budget.safety_margin
    return msgspec.structs.replace(budget, context_window=window)


def check_floor(budget: Budget, parts: Sequence[tuple[str, int]]) -> int:
    """Return the floor: the tokens of what compaction cannot touch, given as (name, tokens).

    Raises FloorError, naming the largest part, when it is over the input budget.
    """
    floor = sum(tokens for _, tokens in parts)
    if floor > budget.input_budget:
        raise FloorError(budget.input_budget, floor, floor, largest_first(parts))
    return floor


def overflow(budget: Budget, tokens: int, floor: int, parts: Sequence[tuple[str, int]]) -> ContextOverflowError:
    """Return the error for a request whose smallest form takes `tokens`."""
    return ContextOverflowError(budget.input_budget, tokens, floor, largest_first(parts))


def largest_first(parts: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Sort (name, tokens) by tokens, the largest first."""
    return tuple(sorted((part for part in parts if part[1]), key=lambda part: -part[1]))
