"""The breakers as values; how they are kept and asked is tested on a session over a file."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnfold.core.breakers import HALF_OPEN_TURNS, MAX_FAILURES, MAX_NO_SAVING, Breaker, Verdict
from turnfold.core.plan import Trigger

VERDICTS = st.sampled_from(get_args(Verdict))
TRIGGERS = st.sampled_from(get_args(Trigger))


def after(*verdicts: Verdict, trigger: Trigger = "context_pressure", configuration: str = "a") -> Breaker:
    """Return the breaker after some compactions at turn 5."""
    breaker = Breaker()
    for verdict in verdicts:
        breaker = breaker.after(verdict, trigger, 5, configuration)
    return breaker


@pytest.mark.parametrize(
    ("verdicts", "opens"),
    [
        (["failed"] * 2, False),
        (["failed"] * 3, True),
        (["saved_nothing"], False),
        (["saved_nothing"] * 2, True),
        (["failed", "failed", "succeeded", "failed", "failed"], False),
        (["saved_nothing", "succeeded", "saved_nothing"], False),
        (["failed", "none", "failed", "none", "failed"], True),
    ],
)
def test_what_opens_it(verdicts: list[Verdict], opens: bool) -> None:
    """Three failures in a row, or no saving twice in a row; a turn in which no model was asked says nothing."""
    assert (after(*verdicts).opened_at is not None) == opens


@pytest.mark.parametrize("trigger", ["manual", "advance"])
def test_what_does_not_count(trigger: Trigger) -> None:
    """A compaction by hand, or to advance, is not judged; that it succeeded is good news all the same."""
    failed: list[Verdict] = ["failed"] * 3
    wasted: list[Verdict] = ["saved_nothing"] * 3
    assert after(*failed, *wasted, trigger=trigger) == Breaker()
    opened = after(*failed)
    assert opened.after("failed", trigger, 6, "a") == opened
    assert opened.after("succeeded", trigger, 6, "a") == Breaker()


@given(st.lists(st.tuples(VERDICTS, TRIGGERS, st.integers(0, 3), st.sampled_from("ab")), max_size=30))
def test_the_promises_hold_over_any_course(course: list[tuple[Verdict, Trigger, int, str]]) -> None:
    """Open exactly from the third failure or second waste since the last success; then closed for eight turns but for a
    manual compaction or another configuration; a failure of a half-open one waits eight turns more.
    """
    breaker, turn, failures, wastes = Breaker(), 0, 0, 0
    for verdict, trigger, passed, configuration in course:
        turn += passed
        allowed = breaker.allows(trigger, turn, configuration)
        waiting = breaker.opened_at is not None and turn - breaker.opened_at < HALF_OPEN_TURNS
        assert allowed == (not waiting or trigger == "manual" or configuration != breaker.configuration)
        if not allowed:
            continue
        breaker = breaker.after(verdict, trigger, turn, configuration)
        counted = trigger not in ("manual", "advance")
        failures = 0 if verdict == "succeeded" else failures + (counted and verdict == "failed")
        wastes = 0 if verdict == "succeeded" else wastes + (counted and verdict == "saved_nothing")
        assert (breaker.opened_at is not None) == (failures >= MAX_FAILURES or wastes >= MAX_NO_SAVING)
        if counted and verdict in ("failed", "saved_nothing") and breaker.opened_at is not None:
            assert breaker.opened_at == turn
