"""The arithmetic of a request's size (SPEC §4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnfold.core.budget import Budget, budget_problems, check_floor, corrected, overflow, session_budget
from turnfold.errors import ConfigError, FloorError


def test_the_example() -> None:
    """8,192 less 2,048 less 512 is 5,632; four fifths of it, rounded down, 4,505."""
    budget = Budget(context_window=8_192, output_reserve=2_048, safety_margin=512)
    assert (budget.input_budget, budget.trigger_line) == (5_632, 4_505)


@pytest.mark.parametrize(
    ("window", "exact", "max_output", "reserve", "margin"),
    [
        (128_000, True, None, 16_384, 2_560),
        (128_000, False, None, 16_384, 6_400),
        (8_192, True, None, 1_638, 163),
        (8_192, True, 4_096, 4_096, 163),
        (200_000, False, 0, 0, 10_000),
    ],
)
def test_what_is_not_given(window: int, exact: bool, max_output: int | None, reserve: int, margin: int) -> None:
    """The model's maximum output, else the smaller of 16,384 and a fifth of the window; 2 % exact, 5 % estimated."""
    budget = session_budget(window, exact=exact, max_output=max_output)
    assert (budget.output_reserve, budget.safety_margin) == (reserve, margin)


def test_an_unset_output_limit_never_takes_the_window() -> None:
    """Whatever the window, most of it is left for the request."""
    assert all(session_budget(size, exact=False).input_budget >= 0.7 * size for size in (500, 8_192, 10**6))


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (Budget(context_window=0), "context_window: 0"),
        (Budget(context_window=-5), "context_window: -5"),
        (Budget(context_window=10, output_reserve=-1), "output_reserve: -1"),
        (Budget(context_window=10, safety_margin=-1), "safety_margin: -1"),
        (Budget(context_window=10, trigger_ratio=1.0), "trigger_ratio: 1.0"),
        (Budget(context_window=10, trigger_ratio=0), "trigger_ratio: 0"),
        (Budget(context_window=10, trigger_ratio=float("nan")), "trigger_ratio: nan"),
        (Budget(context_window=10, output_reserve=8, safety_margin=2), "leave nothing"),
    ],
)
def test_a_budget_that_cannot_be_used_says_so(budget: Budget, words: str) -> None:
    """With the value that is wrong."""
    (problem,) = budget_problems(budget)
    assert words in problem


def test_all_problems_are_told_at_once() -> None:
    """Each with its own sentence."""
    with pytest.raises(ConfigError) as raised:
        session_budget(100, exact=True, output_reserve=-1, safety_margin=-1, trigger_ratio=2.0)
    assert len(raised.value.problems) == 3


@given(st.integers(1_000, 10**6), st.floats(0.5, 4.0))
def test_a_correction_scales_what_the_request_may_take(window: int, factor: float) -> None:
    """A provider that counts twice as many tokens leaves half of ours; the reserve is the provider's own and stays."""
    budget = session_budget(window, exact=False)
    ours = corrected(budget, factor)
    assert ours.output_reserve == budget.output_reserve
    assert budget.input_budget - factor <= ours.input_budget * factor <= budget.input_budget + 1e-6
    assert corrected(budget, 1.0) is budget


def test_the_floors_largest_part_is_named() -> None:
    """A floor over the budget is an error with every part, the largest first; one at the budget is none."""
    budget = Budget(context_window=100)
    parts = [("the tools", 30), ("the system prompt", 70)]
    assert check_floor(budget, parts) == 100
    with pytest.raises(FloorError, match="the system prompt takes 71 tokens") as raised:
        check_floor(budget, [parts[0], ("the system prompt", 71), ("nothing", 0)])
    assert raised.value.parts == (("the system prompt", 71), ("the tools", 30))
    assert overflow(budget, 120, 100, parts).parts[0][0] == "the system prompt"
