"""Masking old tool output serves as well as a summary for a long while, at no model call."""

import asyncio
from pathlib import Path

import pytest

from tests.acceptance.tool_heavy import REQUEST, STEPS, WINDOWS, Run, row, run


@pytest.fixture(scope="module")
def runs() -> dict[tuple[int, bool], Run]:
    """Every window, with and without masking."""

    async def all_of_them() -> dict[tuple[int, bool], Run]:
        return {(window, on): await run(window, masking=on) for window in WINDOWS for on in (False, True)}

    return asyncio.run(all_of_them())


@pytest.mark.parametrize("window", WINDOWS)
def test_masks_alone_reach_the_target_several_times_first(runs: dict[tuple[int, bool], Run], window: int) -> None:
    """At least three compactions by masks before the first summary; fewer model calls than without, for the same turn."""
    masked, plain = runs[window, True], runs[window, False]
    assert abs(masked.tool_share - 0.8) < 0.02
    assert masked.first_masks >= 3
    assert plain.by_masks == 0
    assert masked.calls < plain.calls


@pytest.mark.parametrize("masking", [True, False])
@pytest.mark.parametrize("window", WINDOWS)
def test_every_step_of_the_turn_is_served(runs: dict[tuple[int, bool], Run], window: int, masking: bool) -> None:
    """Each request fits below the trigger, holds the request verbatim and the last step whole, and calls no model for masks."""
    found = runs[window, masking]
    assert len(found.ends) == STEPS + 1
    for number, prepared in enumerate(found.ends):
        assert prepared.tokens <= prepared.budget.trigger_line
        assert any(message.text == REQUEST for message in prepared.messages)
        if number:
            assert [message.id for message in prepared.messages[-2:]] == [f"s{number}", f"r{number}"]
            assert "no difference to the cached artefact" in prepared.messages[-1].results[0].content[0].text  # type: ignore[union-attr]
        if prepared.plan is not None and prepared.plan.mode == "mask":
            assert prepared.calls == 0


def test_a_mask_says_how_to_get_the_output_back(runs: dict[tuple[int, bool], Run]) -> None:
    """One line with the tool, the size and the call's id, in the place of the output."""
    prepared = next(each for each in runs[WINDOWS[0], True].ends if each.plan and each.plan.mode == "mask")
    first = next(message for message in prepared.messages if message.results)
    (part,) = first.results[0].content
    assert part.text.startswith("[check output hidden to save space: ")  # type: ignore[union-attr]
    assert first.results[0].call_id in part.text  # type: ignore[union-attr]
    assert "\n" not in part.text  # type: ignore[union-attr]


def test_the_page_shows_what_is_computed(root: Path, runs: dict[tuple[int, bool], Run]) -> None:
    """docs/masking.md holds these rows and no others."""
    page = (root / "docs/masking.md").read_text("utf-8")
    shown = [line for line in page.splitlines() if line.startswith("| ") and line[2].isdigit()]
    assert shown == [row(found) for found in runs.values()]
