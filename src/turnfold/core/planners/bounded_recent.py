"""Summarize a prefix of the closed groups and keep the newest ones verbatim (the roleplay seed's `bounded_recent`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from turnfold.core.plan import Plan
from turnfold.core.planners.sliding_window import MIN_ALLOWANCE
from turnfold.errors import PlanningError


def plan_bounded_recent(
    groups: Sequence[tuple[int, int]],
    tokens: Sequence[int],
    *,
    keep_last: int,
    allowance: int = 0,
    target: int | None = None,
    limit: int | None = None,
) -> tuple[Plan, ...]:
    """Return candidate plans, the largest prefix of the eligible groups first, halving down to one group.

    `groups` are closed groups as half-open ranges from index 0; the last `keep_last` of them are not eligible. `target`
    and `limit` are what history and summary may take together, in tokens: to be wanted, and at all. The summary's
    allowance shrinks, to no less than 60 tokens, before the target is given up. A candidate that keeps more than that
    could never be adopted and is left out; where even the largest does, it is the only one, and says so. Raises
    PlanningError when no group is eligible.
    """
    eligible = len(groups) - keep_last
    if eligible <= 0:
        raise PlanningError(
            f"{len(groups)} closed groups, of which the last {keep_last} are kept: nothing to summarize."
        )
    cutoffs = [groups[count - 1][1] for count in _halving(eligible)]
    plans = [
        Plan(
            mode="bounded_recent",
            cutoff_index=cutoff,
            kept_tokens=kept,
            allowance=_shrunk(allowance, target, kept),
            target=target,
        )
        for cutoff, kept in zip(cutoffs, _kept(cutoffs, tokens), strict=True)
    ]
    fitting = tuple(plan for plan in plans if plan.allowance >= min(allowance, MIN_ALLOWANCE))
    return fitting or (_excused(plans[0], allowance, limit),)


def _halving(count: int) -> Iterator[int]:
    while count > 0:
        yield count
        count //= 2


def _kept(cutoffs: Sequence[int], tokens: Sequence[int]) -> Iterator[int]:
    """Yield what each cut keeps; the cuts come largest first."""
    kept, end = 0, len(tokens)
    for cutoff in cutoffs:
        kept += sum(tokens[cutoff:end])
        end = cutoff
        yield kept


def _shrunk(allowance: int, limit: int | None, kept: int) -> int:
    return allowance if limit is None else max(0, min(allowance, limit - kept))


def _excused(plan: Plan, allowance: int, limit: int | None) -> Plan:
    """The kept groups alone leave no room under the target: the plan says so and stays within the limit."""
    return msgspec.structs.replace(
        plan,
        allowance=_shrunk(allowance, limit, plan.kept_tokens),
        excused=f"what is kept takes {plan.kept_tokens} tokens of the target's {plan.target}",
    )
