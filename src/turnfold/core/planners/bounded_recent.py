"""Summarize a prefix of the closed groups and keep the newest ones verbatim (the roleplay seed's `bounded_recent`)."""

from __future__ import annotations

from collections.abc import Sequence

from turnfold.core.plan import Plan
from turnfold.errors import PlanningError


def plan_bounded_recent(
    groups: Sequence[tuple[int, int]],
    tokens: Sequence[int],
    *,
    keep_last: int,
    allowance: int = 0,
    target: int | None = None,
) -> tuple[Plan, ...]:
    """Return candidate plans, the largest prefix of the eligible groups first, halving down to one group.

    `groups` are closed groups as half-open ranges from index 0; the last `keep_last` of them are not eligible. Raises
    PlanningError when no group is.
    """
    eligible = len(groups) - keep_last
    if eligible <= 0:
        raise PlanningError(
            f"{len(groups)} closed groups, of which the last {keep_last} are kept: nothing to summarize."
        )
    total = sum(tokens)
    plans = []
    while eligible > 0:
        cutoff = groups[eligible - 1][1]
        kept = total - sum(tokens[:cutoff])
        plans.append(
            Plan(mode="bounded_recent", cutoff_index=cutoff, kept_tokens=kept, allowance=allowance, target=target)
        )
        eligible //= 2
    return tuple(plans)
