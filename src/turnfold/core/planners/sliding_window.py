"""Summarize the oldest part and keep the newest messages verbatim: the agent seed's algorithm and the floor-aware one.

Both plan 100,000 messages with known counts in one pass: kept tokens come from prefix sums, never from re-adding.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

import msgspec

from turnfold.core.groups import legal_cuts, open_request, pair_tools, turn_starts
from turnfold.core.plan import Plan
from turnfold.errors import PlanningError
from turnfold.messages.model import Message

PERCENTAGE = 0.3
EVICTION_STEP = 0.1
MIN_MESSAGES = 4
"""The agent seed's constants (§12.2, §12.3; MIN_MESSAGES from its parity vectors)."""

MIN_HEADROOM_TURNS = 4
MIN_ALLOWANCE = 60
KEPT_TURNS = 2
RECENT_TURNS = 8
"""Floor-aware constants (SPEC §5): turns of room that a compaction must buy, the least a summary may be squeezed to in
tokens, turns always kept where the window allows, and how many recent turns give the average turn's size."""


class WindowGoal(msgspec.Struct, frozen=True, kw_only=True):
    """What the floor-aware planner aims at. `room` is the trigger line less the floor, in tokens: what history and summary
    may take before the next compaction. `limit` is the input budget less the floor: what they may take at all. `allowance` is
    what the summary message may take, `least_allowance` what it is never squeezed below.
    """

    room: int
    limit: int
    allowance: int
    percentage: float = PERCENTAGE
    min_headroom_turns: int = MIN_HEADROOM_TURNS
    least_allowance: int = MIN_ALLOWANCE


def evictions(percentage: float) -> Iterator[float]:
    """Yield the shares of messages to evict, by repeated binary addition as the seed does it.

    The last one may exceed 1.0: from 0.3, seven additions give 0.9999999999999999, so an eighth is made.
    """
    eviction = clamp_percentage(percentage)
    while eviction < 1.0:
        eviction += EVICTION_STEP
        yield eviction


def clamp_percentage(percentage: float) -> float:
    """Return the percentage as the seed reads it: at or below 0 counts as 0.1, above 1 as 1."""
    return 0.1 if percentage <= 0 else min(percentage, 1.0)


def kept_after(tokens: Sequence[int]) -> list[int]:
    """Return, for each index i up to len(tokens), the tokens of messages from i on."""
    total = sum(tokens)
    return [total - before for before in accumulate(tokens, initial=0)]


def plan_parity(
    messages: Sequence[Message], tokens: Sequence[int], *, context_window: int | None, percentage: float = PERCENTAGE
) -> Plan:
    """Plan exactly as the agent seed does (§12.3): cut before an assistant message, 10 % more each round.

    Rounds end when the kept tokens are below `(1 - percentage) * context_window`, or without a window at the first cut.
    Raises PlanningError when there are fewer than 4 messages, no cut is found, or the eviction reaches 1.0.
    """
    count = len(messages)
    if count < MIN_MESSAGES:
        raise PlanningError("Not enough messages for sliding window compaction.")
    maximum = count - 2 if messages[-1].calls else count - 1
    cuts = [index for index in range(1, maximum) if messages[index].role == "assistant"]
    kept = kept_after(tokens)
    goal = None if context_window is None else (1 - clamp_percentage(percentage)) * context_window
    cutoff = None
    for eviction in evictions(percentage):
        cutoff = _nearest(cuts, min(math.floor(eviction * count + 0.5), count - 1))
        if cutoff is not None and (goal is None or kept[cutoff] < goal) and eviction < 1.0:
            return Plan(mode="sliding_window", cutoff_index=cutoff, kept_tokens=kept[cutoff])
    raise PlanningError("No assistant message found for sliding window compaction.")


def _nearest(ascending: Sequence[int], limit: int) -> int | None:
    """Return the largest value at or below `limit`, or None."""
    at = bisect_right(ascending, limit)
    return ascending[at - 1] if at else None


def plan_floor_aware(messages: Sequence[Message], tokens: Sequence[int], goal: WindowGoal) -> Plan:
    """Plan so that the next compaction is some turns away, whatever the floor takes (SPEC §5).

    Whole turns are preferred and the last two are kept where the window allows it. Tried in this order: the seed's rounds
    with the full allowance; the last two turns with a smaller summary; without the headroom; cuts inside the last two
    turns. Raises PlanningError when not even the last legal cut fits the input budget.
    """
    if len(messages) < MIN_MESSAGES:
        raise PlanningError(f"{len(messages)} messages: too few to cut between.")
    return _FloorAware(messages, tokens, goal).plan()


class _FloorAware:
    """One planning: what is known of the history, and the tries in order."""

    def __init__(self, messages: Sequence[Message], tokens: Sequence[int], goal: WindowGoal) -> None:
        self.goal, self.count = goal, len(messages)
        self.cuts = legal_cuts(messages, pair_tools(messages))
        starts = turn_starts(messages)
        self.whole_turns = sorted(set(starts) & set(self.cuts))
        self.last_turns = starts[-KEPT_TURNS] if len(starts) > KEPT_TURNS else 0
        self.kept = kept_after(tokens)
        request = open_request(messages)
        self.request = (request, tokens[request]) if request is not None else (self.count, 0)
        self.turn_size = _average_turn(starts, self.kept)
        self.share = math.floor((1 - clamp_percentage(goal.percentage)) * goal.room)

    def plan(self) -> Plan:
        if not self.cuts:
            raise PlanningError("no legal cut point: every boundary would separate a tool call from its results.")
        plan = self._in_rounds() or self._at_last_turns() or self._inside_last_turns() or self._whatever_fits()
        if plan is None:
            raise PlanningError("the newest messages alone do not fit the input budget.")
        return plan

    @property
    def headroom_target(self) -> int:
        return min(self.share, self.goal.room - self.goal.min_headroom_turns * self.turn_size)

    def _tokens_after(self, cut: int) -> int:
        """Tokens shown from the history when cut there: an open turn's request is shown again after a cut beyond it."""
        index, size = self.request
        return self.kept[cut] + (size if cut > index else 0)

    def _try(self, cut: int, target: int, *, squeeze: bool) -> Plan | None:
        kept = self._tokens_after(cut)
        least = min(self.goal.least_allowance, self.goal.allowance) if squeeze else self.goal.allowance
        if kept + least > target:
            return None
        return self._plan(cut, target, min(self.goal.allowance, target - kept))

    def _plan(self, cut: int, target: int, allowance: int, excused: str | None = None) -> Plan:
        return Plan(
            mode="sliding_window",
            cutoff_index=cut,
            kept_tokens=self._tokens_after(cut),
            target=target,
            allowance=allowance,
            excused=excused,
        )

    def _in_rounds(self) -> Plan | None:
        for eviction in evictions(self.goal.percentage):
            limit = min(math.floor(eviction * self.count + 0.5), self.last_turns)
            cut = _nearest(self.whole_turns, limit) or _nearest(self.cuts, limit)
            if cut is not None and (plan := self._try(cut, self.headroom_target, squeeze=False)):
                return plan
        return None

    def _at_last_turns(self) -> Plan | None:
        """Cut before the last two turns: squeeze the summary, then give up the headroom, then miss the share."""
        cut = self.last_turns
        if cut not in self.whole_turns:
            return None
        one_turn_left = self.goal.room - self.turn_size
        return (
            self._try(cut, self.headroom_target, squeeze=True)
            or self._try(cut, self.share, squeeze=True)
            or self._excuse(self._try(cut, one_turn_left, squeeze=True))
        )

    def _excuse(self, plan: Plan | None) -> Plan | None:
        if plan is None:
            return None
        excused = f"the last {KEPT_TURNS} turns take {plan.kept_tokens} of {self.goal.room} tokens"
        return self._plan(plan.cutoff_index, plan.target or 0, plan.allowance, excused)

    def _inside_last_turns(self) -> Plan | None:
        deeper = [
            *(cut for cut in self.whole_turns if cut > self.last_turns),
            *(cut for cut in self.cuts if cut > self.last_turns),
        ]
        for squeeze in (False, True):
            for cut in deeper:
                if plan := self._try(cut, self.share, squeeze=squeeze):
                    return plan
        return None

    def _whatever_fits(self) -> Plan | None:
        """The last legal cut, as long as the input budget holds it."""
        cut = self.cuts[-1]
        plan = self._try(cut, self.goal.limit, squeeze=True)
        if plan is None:
            return None
        excused = f"the newest messages, which cannot be cut, take {plan.kept_tokens} of {self.goal.room} tokens"
        return self._plan(cut, self.goal.limit, plan.allowance, excused)


def _average_turn(starts: Sequence[int], kept: Sequence[int]) -> int:
    recent = starts[-RECENT_TURNS:]
    return math.ceil(kept[recent[0]] / len(recent)) if recent else 0
