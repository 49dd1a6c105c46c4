"""The sawtooth of small windows: the agent seed compacts every second turn there, turnfold does not."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.acceptance.sawtooth import BUDGET, FLOOR, MODES, compactions, play, row


@pytest.mark.parametrize("turns", [17, 40])
async def test_parity_is_the_seeds_sawtooth(turns: int) -> None:
    """17 messages to 11, then 15 to 11 about every second turn, with the tokens of the seed's own run."""
    done = [turn.prepared for turn in compactions(await play(turns, MODES["parity"]))]
    assert (done[0].messages_before, done[0].messages_after) == (17, 11)
    assert {(prepared.messages_before, prepared.messages_after) for prepared in done[1:]} == {(15, 11)}
    assert abs(done[0].message_tokens_before - 462) <= 5
    assert all(345 <= prepared.message_tokens_after <= 370 for prepared in done)
    numbers = [turn.number for turn in compactions(await play(turns, MODES["parity"]))]
    assert {after - before for before, after in pairwise(numbers)} == {2}


async def test_by_default_seventeen_turns_compact_at_most_three_times() -> None:
    """The floor is reckoned with, so that a compaction buys some turns."""
    assert 1 <= len(compactions(await play(17, MODES["default"]))) <= 3


async def test_by_default_forty_turns_compact_at_most_half_as_often() -> None:
    """The longer it goes on, the more it saves."""
    parity, default = await play(40, MODES["parity"]), await play(40, MODES["default"])
    assert 2 * len(compactions(default)) <= len(compactions(parity))


@pytest.mark.parametrize("turns", [17, 40])
@pytest.mark.parametrize("mode", MODES)
async def test_the_last_two_turns_are_always_verbatim(mode: str, turns: int) -> None:
    """In every request, compacted or not, after the summary and before the incoming turn; and it fits."""
    for turn in await play(turns, MODES[mode]):
        assert turn.prepared.messages[-len(turn.last_turns) - 1 :] == (*turn.last_turns, turn.incoming)
        assert turn.prepared.tokens <= BUDGET.trigger_line
        assert turn.prepared.tokens - turn.prepared.message_tokens_after == FLOOR


@pytest.mark.parametrize("mode", MODES)
async def test_the_summary_message_keeps_its_allowance(mode: str) -> None:
    """At most 93 tokens, envelope included, and the first thing that was said is not lost at once."""
    for turn in compactions(await play(17, MODES[mode])):
        (summary,) = [message for message in turn.prepared.messages if message.kind == "summary"]
        assert -(-len(summary.text) // 4) <= 93
        assert turn.prepared.reasons == ()


async def test_the_page_shows_what_is_computed(root: Path) -> None:
    """docs/sawtooth.md holds these rows and no others."""
    rows = [row(mode, await play(turns, MODES[mode])) for turns in (17, 40) for mode in MODES]
    page = (root / "docs/sawtooth.md").read_text("utf-8")
    shown = [line for line in page.splitlines() if line.startswith("| ") and line[2].isdigit()]
    assert shown == rows
