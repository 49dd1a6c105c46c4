"""Which plans a policy tries, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from turnfold.core.budget import Budget
from turnfold.core.plan import Plan
from turnfold.core.planners import WindowGoal, plan_all, plan_bounded_recent, plan_floor_aware, plan_parity
from turnfold.core.planners.sliding_window import MIN_ALLOWANCE
from turnfold.core.policy import Policy
from turnfold.core.situation import TRANSIENT_KINDS, Situation
from turnfold.errors import PlanningError
from turnfold.messages.model import Message

MIN_SAID = 32
"""Tokens that a summary may say at least, its envelope apart: some twenty words."""


class PlanningInput(msgspec.Struct, frozen=True, kw_only=True):
    """What planners see: the rows, their tokens (0 for pinned ones, which the floor holds), the closed groups, the floor.

    `incoming` is the turn that nothing summarizes and `summary` the message that shows the old summary: the agent seed
    counts both as history, so parity does. `envelope` is what the summary message takes before it says anything.
    """

    rows: tuple[Message, ...]
    tokens: tuple[int, ...]
    groups: tuple[tuple[int, int], ...]
    floor: int
    budget: Budget
    envelope: int = 0
    incoming: tuple[Message, ...] = ()
    summary: tuple[Message, ...] = ()
    count: Callable[[Message], int]


def planning_input(
    situation: Situation,
    shown: Iterable[Message],
    *,
    floor: int,
    budget: Budget,
    envelope: int,
    count: Callable[[Message], int],
) -> PlanningInput:
    """Return what planners see of a situation; `shown` is its history as the view shows it, masked."""
    pinned = situation.pinned
    lasting = (row for row in shown if row.kind not in TRANSIENT_KINDS)
    return PlanningInput(
        rows=situation.planning_rows(),
        tokens=tuple(0 if row.id in pinned else count(row) for row in lasting),
        groups=situation.closed_groups(),
        floor=floor,
        budget=budget,
        envelope=envelope,
        incoming=situation.incoming,
        summary=(situation.summary,) if situation.summary else (),
        count=count,
    )


def candidate_plans(policy: Policy, known: PlanningInput) -> tuple[Plan, ...]:
    """Return the plans to try, best first. Raises PlanningError, with the reason, when there is nothing to try."""
    match policy.planner:
        case "bounded_recent":
            return _bounded_recent(policy, known)
        case "all":
            return (_all(policy, known),)
        case "sliding_window":
            return _sliding_window(policy, known)


def _sliding_window(policy: Policy, known: PlanningInput) -> tuple[Plan, ...]:
    """The window first, everything as the fallback (SPEC §5)."""
    try:
        first = (_window(policy, known),)
    except PlanningError as error:
        note = f"sliding window: {error.reason}"
        return (msgspec.structs.replace(_all(policy, known), reasons=(note,)),)
    try:
        return (*first, _all(policy, known))
    except PlanningError:
        return first


def _window(policy: Policy, known: PlanningInput) -> Plan:
    allowance = policy.allowance(known.budget.context_window)
    if policy.floor_aware:
        goal = WindowGoal(
            room=known.budget.trigger_line - known.floor,
            limit=known.budget.input_budget - known.floor,
            allowance=allowance,
            percentage=policy.percentage,
            min_headroom_turns=policy.min_headroom_turns,
            least_allowance=max(MIN_ALLOWANCE, known.envelope + MIN_SAID),
        )
        return plan_floor_aware(known.rows, known.tokens, goal)
    return msgspec.structs.replace(_parity(policy, known), allowance=allowance)


def _parity(policy: Policy, known: PlanningInput) -> Plan:
    """Plan over all that the seed holds in context. It never cuts behind the last assistant message, so nothing of the
    incoming turn is covered.
    """
    plan = plan_parity(
        (*known.summary, *known.rows, *known.incoming),
        (*map(known.count, known.summary), *known.tokens, *map(known.count, known.incoming)),
        context_window=known.budget.context_window,
        percentage=policy.percentage,
    )
    cutoff = plan.cutoff_index - len(known.summary)
    if cutoff < 1:
        raise PlanningError("it would summarize the old summary alone.")
    return msgspec.structs.replace(plan, cutoff_index=cutoff)


def _all(policy: Policy, known: PlanningInput) -> Plan:
    """Everything; the summary may take what the input budget leaves beside the floor, at most its allowance."""
    plan = plan_all(known.rows, known.tokens)
    room = known.budget.input_budget - known.floor - plan.kept_tokens
    return msgspec.structs.replace(plan, allowance=max(0, min(policy.allowance(known.budget.context_window), room)))


def _bounded_recent(policy: Policy, known: PlanningInput) -> tuple[Plan, ...]:
    return plan_bounded_recent(
        known.groups,
        known.tokens,
        keep_last=policy.keep_last_groups,
        allowance=policy.allowance(known.budget.context_window),
        target=known.budget.trigger_line - known.floor,
        limit=known.budget.input_budget - known.floor,
    )
