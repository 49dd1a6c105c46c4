"""Every token counter passes the shipped contract suite whole."""

import pytest

from turnfold.ports import TokenCounter
from turnfold.testing.counter_suite import CounterSuite
from turnfold.tokens import COUNTERS, make_counter


class TestBytePairs(CounterSuite):
    """The default."""

    def counter(self) -> TokenCounter:
        """Exact counts of the current encoding."""
        return make_counter("bpe")


class TestOlderBytePairs(CounterSuite):
    """The encoding before it."""

    def counter(self) -> TokenCounter:
        """Exact counts too."""
        return make_counter("cl100k_base")


class TestScriptAware(CounterSuite):
    """The estimate for unknown models."""

    def counter(self) -> TokenCounter:
        """By script."""
        return make_counter("script_aware")


class TestChars4(CounterSuite):
    """The agent seed's count; it is too low for Chinese, which is why it is for parity only."""

    undercounts_chinese = True

    def counter(self) -> TokenCounter:
        """Four code units a token."""
        return make_counter("chars4")


@pytest.mark.parametrize("name", COUNTERS)
def test_a_counter_is_found_by_its_name(name: str) -> None:
    """And counts are stored under the name of what counted."""
    assert make_counter(name).name == {"bpe": "o200k_base"}.get(name, name)
