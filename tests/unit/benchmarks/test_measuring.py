"""What the table of benchmarks says: a bound is broken by more than noise, or it is not."""

import pytest
from benchmarks.measuring import Row, digits, ratio_row, skipped, table


@pytest.mark.parametrize(
    ("ours", "holds"),
    [([1, 1, 1, 1], True), ([2, 2, 2, 9], True), ([1, 1, 9, 9], True), ([3, 3, 3, 3], False), ([1, 3, 3, 3, 3], False)],
)
def test_a_bound_is_broken_when_most_rounds_lie_beyond_it(ours: list[float], holds: bool) -> None:
    """A few slow rounds of a shared machine break nothing; three quarters of them do."""
    assert ratio_row("a", ours, "b", [1.0] * len(ours), bound=2).holds is holds


def test_ratios_are_of_the_same_round() -> None:
    """A machine that is slow for both in some rounds changes no ratio."""
    assert ratio_row("a", [1.0, 10.0, 100.0], "b", [1.0, 10.0, 100.0], bound=1).ratio == "1 (1 to 1)"


def test_a_figure_without_a_bound_holds_nothing() -> None:
    """What has no bound, and what could not be measured, breaks nothing."""
    assert ratio_row("a", [9.0], "b", [1.0], bound=None).holds is None
    assert skipped("a", "not installed").holds is None


def test_the_table_shows_what_is_broken() -> None:
    """Each row is a line; a pipe in a name does not end its cell."""
    text = table([Row("a|b", "1 ms", holds=False), Row("c", "2 ms", holds=True), skipped("d", "not installed")])
    lines = text.splitlines()
    assert len(lines) == 5
    assert "**NO**" in lines[2]
    assert "a\\|b" in lines[2]
    assert lines[3].endswith("| yes |")
    assert "not installed" in lines[4]


@pytest.mark.parametrize(("value", "shown"), [(1234.5, "1234"), (12.34, "12.3"), (0.01234, "0.0123")])
def test_three_digits_are_enough(value: float, shown: str) -> None:
    """Figures are read, not computed with."""
    assert digits(value) == shown
