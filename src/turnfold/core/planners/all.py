"""Summarize everything, except a call that still waits for its result (the agent seed's `all` mode, §12.2)."""

from __future__ import annotations

from collections.abc import Sequence

from turnfold.core.groups import pair_tools
from turnfold.core.plan import Plan
from turnfold.errors import PlanningError
from turnfold.messages.model import Message


def plan_all(
    messages: Sequence[Message], tokens: Sequence[int], *, allowance: int = 0, target: int | None = None
) -> Plan:
    """Return the plan that keeps only a pending call, with the results it already has.

    The pending call needs nothing before it: its results will follow it. Raises PlanningError when nothing is left to
    summarize.
    """
    pending_from = pair_tools(messages).pending_from
    cutoff = len(messages) if pending_from is None else pending_from
    if cutoff == 0:
        raise PlanningError("there is nothing to summarize.")
    kept = sum(tokens[cutoff:])
    return Plan(mode="all", cutoff_index=cutoff, kept_tokens=kept, allowance=allowance, target=target)
