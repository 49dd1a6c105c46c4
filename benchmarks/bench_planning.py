"""Planning 100,000 messages whose counts are known: one pass, against a planner that adds up again in every step.

The other planner is the plain form of the seed's algorithm: evict 10 % more each round, step back to an assistant message,
and add up the kept messages' known counts, until they are below the goal. The default planner, which also pairs tool calls
with their results and looks for whole turns, has no such twin: its time is shown as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from benchmarks.conversations import exchanges, tool_steps
from benchmarks.measuring import Row, in_turns, quantity, ratio_row, timed
from turnfold.core.planners import WindowGoal, plan_floor_aware, plan_parity
from turnfold.core.planners.sliding_window import evictions
from turnfold.messages.model import Message

MESSAGES, ROUNDS = 100_000, 9
KEEP = 0.06
"""The share of the tokens that may stay, so that most rounds are needed."""


def plan_by_adding(messages: Sequence[Message], known: dict[str, int], goal: float) -> int:
    """Return the cut. Counts are looked up by id, as one must who keeps no sums."""
    for eviction in evictions(0.3):
        cut = min(math.floor(eviction * len(messages) + 0.5), len(messages) - 2)
        while cut > 0 and messages[cut].role != "assistant":
            cut -= 1
        if sum(known[message.id] for message in messages[cut:]) < goal:
            return cut
    raise ValueError("no cut is enough")


def rows() -> list[Row]:
    """Plan talk as the seed does, and tool use with the default planner."""
    talk = [message for pair in exchanges(MESSAGES // 2, words=5) for message in pair]
    tools = [*tool_steps(MESSAGES // 2 - 1, seed=1), *next(exchanges(1, start=10**6))][:MESSAGES]
    return [compare_parity(talk), time_default(tools)]


def compare_parity(messages: list[Message]) -> Row:
    """The seed's algorithm, with the seed's cuts; both find the same one."""
    tokens = [20] * len(messages)
    known = {message.id: 20 for message in messages}
    goal = KEEP * sum(tokens)
    window = int(goal / 0.7)
    plan = plan_parity(messages, tokens, context_window=window)
    assert plan.cutoff_index == plan_by_adding(messages, known, 0.7 * window)
    ours, theirs = in_turns(
        ROUNDS,
        lambda: plan_parity(messages, tokens, context_window=window),
        lambda: plan_by_adding(messages, known, 0.7 * window),
    )
    name = f"planning {len(messages):,} messages, the seed's algorithm"
    return ratio_row(name, ours, "adding up in every step", theirs, bound=0.5)


def time_default(messages: list[Message]) -> Row:
    """The default planner over tool use."""
    tokens = [20] * len(messages)
    room = int(KEEP * sum(tokens) / 0.7)
    goal = WindowGoal(room=room, limit=room, allowance=500)
    seconds = [timed(lambda: plan_floor_aware(messages, tokens, goal)) for _ in range(5)]
    return Row(f"planning {len(messages):,} messages of tool use, by default", quantity(median(seconds), "ms"))


if __name__ == "__main__":
    from benchmarks.measuring import main

    main(rows)
