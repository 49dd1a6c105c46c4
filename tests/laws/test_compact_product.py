"""Whatever a chat product does, and whatever breaks, no promise of the Compact runtime does."""

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.laws.compact_machine import CompactMachine, ExplicitMachine

SHORT = settings(max_examples=15, stateful_step_count=30)
LONG = settings(max_examples=150, stateful_step_count=120)


@pytest.mark.parametrize("machine", [CompactMachine, ExplicitMachine])
def test_a_random_product_is_always_served_truly(machine: type[CompactMachine]) -> None:
    """Budgets hold, stale summaries are not used, versions are not overwritten, `persisted` does not lie, nothing vanishes."""
    run_state_machine_as_test(machine, settings=SHORT)


@pytest.mark.soak
@pytest.mark.parametrize("machine", [CompactMachine, ExplicitMachine])
def test_a_random_product_for_thousands_of_steps(machine: type[CompactMachine]) -> None:
    """The same for thousands of steps in long conversations."""
    run_state_machine_as_test(machine, settings=LONG)
