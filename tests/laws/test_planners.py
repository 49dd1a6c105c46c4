"""What every plan promises, whatever the conversation: SPEC §5 as laws."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar, overload

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.laws.histories import histories
from tests.rough_counter import RoughCounter
from turnfold.core.groups import closed_groups, legal_cuts, open_request, pair_tools, turn_starts
from turnfold.core.plan import Plan
from turnfold.core.planners import (
    MaskCandidate,
    WindowGoal,
    plan_all,
    plan_bounded_recent,
    plan_floor_aware,
    plan_masks,
    plan_parity,
)
from turnfold.errors import PlanningError
from turnfold.messages.model import Message, text_message

T = TypeVar("T")
GOALS = st.builds(
    lambda room, more, allowance, percentage, headroom, least: WindowGoal(
        room=room,
        limit=room + more,
        allowance=allowance,
        percentage=percentage,
        min_headroom_turns=headroom,
        least_allowance=least,
    ),
    st.integers(-50, 1_500),
    st.integers(0, 400),
    st.integers(0, 200),
    st.sampled_from([0.1, 0.3, 0.5, 0.9]),
    st.integers(0, 6),
    st.sampled_from([60, 96]),
)


def sizes(rows: Sequence[Message]) -> list[int]:
    """Return the tokens of each row."""
    return [RoughCounter().count_message(row) for row in rows]


def shown_after(rows: Sequence[Message], tokens: Sequence[int], cut: int) -> int:
    """Return the tokens that a view shows of a history cut there: an open turn's request is shown wherever it stands."""
    request = open_request(rows)
    return sum(tokens[cut:]) + (tokens[request] if request is not None and request < cut else 0)


def separated(rows: Sequence[Message], cut: int) -> bool:
    """Whether a cut has a call on one side and its result on the other."""
    return any(start < cut <= end for start, end in pair_tools(rows).spans)


def floor_aware(rows: Sequence[Message], goal: WindowGoal) -> Plan | None:
    """Return the floor-aware plan, or None where there is none."""
    try:
        return plan_floor_aware(rows, sizes(rows), goal)
    except PlanningError:
        return None


@given(histories(min_size=2), GOALS)
def test_a_window_is_cut_where_it_may_be(rows: tuple[Message, ...], goal: WindowGoal) -> None:
    """Before a user's or an assistant's message, not the first, never between a call and its result or a waiting call."""
    plan = floor_aware(rows, goal)
    assume(plan is not None)
    assert plan is not None
    assert 0 < plan.cutoff_index < len(rows)
    assert plan.cutoff_index in legal_cuts(rows)
    assert rows[plan.cutoff_index].role in ("user", "assistant")
    assert not separated(rows, plan.cutoff_index)
    pending = pair_tools(rows).pending_from
    assert pending is None or plan.cutoff_index <= pending


@given(histories(min_size=2), GOALS)
def test_a_plan_keeps_its_own_promises(rows: tuple[Message, ...], goal: WindowGoal) -> None:
    """Kept messages and summary stay within the target, the target within what can be sent; the allowance is not squeezed
    below its least, which is never under 60 tokens where the allowance is not.
    """
    plan = floor_aware(rows, goal)
    assume(plan is not None)
    assert plan is not None
    assert plan.target is not None
    assert plan.kept_tokens == shown_after(rows, sizes(rows), plan.cutoff_index)
    assert plan.kept_tokens + plan.allowance <= plan.target <= goal.limit
    assert min(goal.least_allowance, goal.allowance) <= plan.allowance <= goal.allowance
    share = math.floor((1 - goal.percentage) * goal.room)
    assert plan.excused is not None or plan.target <= share


@settings(max_examples=30)
@given(histories(min_size=12, odd=False), st.integers(0, 300), st.sampled_from([60, 96]), st.integers(0, 8))
def test_the_last_two_turns_are_kept_where_the_window_allows(
    rows: tuple[Message, ...], spare: int, least: int, headroom: int
) -> None:
    """Where they fit under the share together with the smallest summary, the cut is at or before them, whatever headroom
    was wished for.
    """
    starts, tokens = turn_starts(rows), sizes(rows)
    assume(len(starts) > 2 and starts[-2] in legal_cuts(rows))
    room = math.ceil((shown_after(rows, tokens, starts[-2]) + least + spare) / 0.7) + 1
    goal = WindowGoal(room=room, limit=room + 50, allowance=200, min_headroom_turns=headroom, least_allowance=least)
    plan = floor_aware(rows, goal)
    assert plan is not None
    assert plan.cutoff_index <= starts[-2]


@given(histories(min_size=4), GOALS)
def test_a_plan_fails_only_where_nothing_fits(rows: tuple[Message, ...], goal: WindowGoal) -> None:
    """A failure means that there are too few messages, no legal cut, or no room even for the newest ones."""
    if floor_aware(rows, goal) is not None:
        return
    cuts, tokens = legal_cuts(rows), sizes(rows)
    least = min(goal.least_allowance, goal.allowance)
    assert len(rows) < 4 or not cuts or shown_after(rows, tokens, cuts[-1]) + least > goal.limit


@given(histories(min_size=8, odd=False), st.integers(20, 90))
def test_a_compaction_under_pressure_is_never_wasteful(rows: tuple[Message, ...], per_cent: int) -> None:
    """Where the history is over the room, a plan that needs no excuse frees at least the share that it was asked for."""
    room = sum(sizes(rows)) * per_cent // 100
    plan = floor_aware(rows, WindowGoal(room=room, limit=room * 5 // 4, allowance=120))
    if plan is not None and plan.excused is None:
        assert sum(sizes(rows)) - plan.kept_tokens - plan.allowance >= 0.3 * room - 1


@given(histories(min_size=1))
def test_all_keeps_a_waiting_call_and_nothing_else(rows: tuple[Message, ...]) -> None:
    """It covers everything else; where nothing else is there, there is no plan."""
    pending = pair_tools(rows).pending_from
    try:
        plan = plan_all(rows, sizes(rows))
    except PlanningError:
        assert not rows or pending == 0
        return
    assert plan.cutoff_index == (len(rows) if pending is None else pending)
    assert plan.kept_tokens == sum(sizes(rows)[plan.cutoff_index :])


@given(histories(min_size=4), st.none() | st.integers(0, 1_500), st.sampled_from([0.1, 0.3, 0.8]))
def test_parity_cuts_before_a_reply(rows: tuple[Message, ...], window: int | None, percentage: float) -> None:
    """As the agent seed does, and below its goal where there is a window."""
    try:
        plan = plan_parity(rows, sizes(rows), context_window=window, percentage=percentage)
    except PlanningError:
        return
    assert rows[plan.cutoff_index].role == "assistant"
    assert 0 < plan.cutoff_index < len(rows) - 1
    assert window is None or plan.kept_tokens < (1 - percentage) * window


# -- bounded_recent --------------------------------------------------------------------------------------------------------


@given(histories(min_size=4, odd=False), st.integers(0, 4), st.integers(0, 300), st.none() | st.integers(-100, 1_500))
def test_bounded_recent_tries_the_largest_first_and_halves(
    rows: tuple[Message, ...], keep_last: int, allowance: int, target: int | None
) -> None:
    """Whole groups, the last ones kept, each candidate at most half of the one before; only the largest needs an excuse."""
    groups, tokens = closed_groups(rows), sizes(rows)
    if len(groups) <= keep_last:
        with pytest.raises(PlanningError):
            plan_bounded_recent(groups, tokens, keep_last=keep_last)
        return
    plans = plan_bounded_recent(groups, tokens, keep_last=keep_last, allowance=allowance, target=target, limit=target)
    ends = [end for _, end in groups]
    counts = [ends.index(plan.cutoff_index) + 1 for plan in plans]
    assert counts[0] == len(groups) - keep_last
    assert all(after == before // 2 for before, after in pairwise(counts))
    for plan in plans:
        assert plan.kept_tokens == sum(tokens[plan.cutoff_index :])
        assert target is None or plan.excused or plan.kept_tokens + plan.allowance <= target
        assert plan.excused or plan.allowance >= min(60, allowance)
    assert [plan.excused for plan in plans[1:]] == [None] * (len(plans) - 1)
    if target is None:
        assert counts[-1] == 1


# -- masks -----------------------------------------------------------------------------------------------------------------

CANDIDATES = st.lists(
    st.builds(
        lambda tokens, placeholder: MaskCandidate(
            message_id="r", call_id="c", tokens=tokens, placeholder_tokens=placeholder
        ),
        st.integers(0, 300),
        st.integers(10, 40),
    ),
    max_size=20,
)


@given(CANDIDATES, st.integers(-10, 2_000), st.integers(0, 6))
def test_masks_are_the_oldest_and_no_more_than_needed(
    candidates: list[MaskCandidate], excess: int, keep_last: int
) -> None:
    """In order, none of the last results, none that is no larger than its line, and one fewer would not do."""
    chosen, saved = plan_masks(candidates, excess=excess, keep_last=keep_last)
    eligible = [
        each for each in candidates[: len(candidates) - keep_last or None] if each.tokens > each.placeholder_tokens
    ]
    eligible = eligible if len(candidates) > keep_last else []
    assert list(chosen) == eligible[: len(chosen)]
    gains = [each.tokens - each.placeholder_tokens for each in chosen]
    assert saved == sum(gains)
    assert not gains or saved - gains[-1] < excess
    assert saved >= excess or len(chosen) == len(eligible)


# -- cost ------------------------------------------------------------------------------------------------------------------


class Counted(Sequence[T]):
    """A sequence that counts how many of its items were read."""

    def __init__(self, items: Sequence[T]) -> None:
        self.items, self.read = items, 0

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: Any) -> Any:
        found = self.items[index]
        self.read += len(found) if isinstance(index, slice) else 1
        return found

    def __iter__(self) -> Iterator[T]:
        for item in self.items:
            self.read += 1
            yield item


LONG = 100_000
PASSES = 8
"""Times that each message and each count may be looked at: a small constant, not a step's share of the history."""


@pytest.fixture(scope="module")
def long_history() -> tuple[Message, ...]:
    """A hundred thousand messages."""
    return tuple(text_message(f"m{at}", "user" if at % 2 == 0 else "assistant", "x") for at in range(LONG))


@pytest.mark.parametrize("window", [1_000, 9_900_000])
def test_planning_a_long_history_reads_each_message_a_few_times(long_history: tuple[Message, ...], window: int) -> None:
    """Prefix sums: whatever the window, so however many rounds are tried, the counts are not added up again."""
    groups = tuple((at, at + 2) for at in range(0, LONG, 2))
    planners: dict[str, Any] = {
        "parity": lambda rows, tokens: plan_parity(rows, tokens, context_window=window),
        "floor aware": lambda rows, tokens: plan_floor_aware(
            rows, tokens, WindowGoal(room=window, limit=window, allowance=200)
        ),
        "all": plan_all,
        "bounded recent": lambda _, tokens: plan_bounded_recent(groups, tokens, keep_last=2, target=window),
    }
    for name, plan in planners.items():
        rows, tokens = Counted(long_history), Counted([100] * LONG)
        plan(rows, tokens)
        assert rows.read <= PASSES * LONG, name
        assert tokens.read <= PASSES * LONG, name
