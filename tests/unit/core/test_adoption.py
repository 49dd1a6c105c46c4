"""The gate: one reason for each way in which a compaction must not replace the old view, and none for one that may."""

from typing import Any

import msgspec
import pytest

from turnfold.core.adoption import MIN_SAVING, Proposal, codes, refusals
from turnfold.core.budget import Budget
from turnfold.messages.model import Message, Text, ToolCall, ToolResult, text_message

BUDGET = Budget(context_window=1_000)
SYSTEM, NOW = text_message("system", "system", "Be brief."), text_message("now", "user", "And now?")
SUMMARY = text_message("s", "user", "They fixed it.", kind="summary")
CALL = Message(id="call", role="assistant", parts=(ToolCall(id="c1", name="ls", arguments="{}"),))
RESULT = Message(id="result", role="tool", parts=(ToolResult(call_id="c1", content=(Text(text="a"),)),))

GOOD = Proposal(
    trigger="context_pressure",
    budget=BUDGET,
    messages=(SYSTEM, SUMMARY, NOW),
    tokens_before=900,
    tokens_after=500,
    verbatim=(SYSTEM, NOW),
    summary="They fixed it.",
    target=600,
)


def refused(**changes: Any) -> set[str]:
    """Return the codes for the good proposal with some fields changed."""
    return set(codes(refusals(msgspec.structs.replace(GOOD, **changes))))


def test_a_good_compaction_is_adopted() -> None:
    """Nothing stands against it."""
    assert refusals(GOOD) == ()


@pytest.mark.parametrize("summary", [None, "", " \n\t"])
def test_no_text_is_no_summary(summary: str | None) -> None:
    """`blank`; masks alone need none."""
    assert refused(summary=summary) == {"blank"}
    assert refused(summary=summary, masks_only=True) == set()


@pytest.mark.parametrize("messages", [(SYSTEM, RESULT, NOW), (SYSTEM, CALL, NOW)], ids=["no call", "no result"])
def test_tool_pairs_are_whole(messages: tuple[Message, ...]) -> None:
    """`tool_pairs`: a result without its call, or a call that was answered."""
    assert refused(messages=messages) == {"tool_pairs"}
    assert refused(messages=(SYSTEM, NOW, CALL, RESULT)) == set()


@pytest.mark.parametrize("missing", [SYSTEM, NOW], ids=lambda message: message.id)
def test_what_must_stand_stands_as_it_is(missing: Message) -> None:
    """`not_verbatim`: gone, or there with other words; another object with the same words will do."""
    rest = tuple(message for message in GOOD.messages if message is not missing)
    assert refused(messages=rest) == {"not_verbatim"}
    assert refused(messages=(*rest, text_message(missing.id, missing.role, "Other words."))) == {"not_verbatim"}
    assert refused(messages=(*rest, text_message(missing.id, missing.role, missing.text))) == set()


def test_it_fits() -> None:
    """`over_budget`, by one token."""
    assert refused(tokens_after=1_001, target=None, tokens_before=2_000) == {"over_budget"}
    assert refused(tokens_after=1_000, target=None, tokens_before=2_000) == set()


@pytest.mark.parametrize("trigger", ["context_pressure", "overflow"])
def test_under_pressure_it_reaches_the_target_or_says_why_not(trigger: str) -> None:
    """`over_target`, by one token."""
    assert refused(trigger=trigger, tokens_after=601) == {"over_target"}
    assert refused(trigger=trigger, tokens_after=601, excused="the last two turns are long") == set()
    assert refused(trigger=trigger, tokens_after=600) == set()


@pytest.mark.parametrize("trigger", ["context_pressure", "overflow"])
@pytest.mark.parametrize("before", range(20, 4_000, 60))
def test_under_pressure_it_saves_five_per_cent(trigger: str, before: int) -> None:
    """`no_saving`; exactly five per cent is enough, whatever binary fractions make of it."""
    enough = before * 95 // 100
    wide = Budget(context_window=10_000)
    assert refused(trigger=trigger, budget=wide, target=None, tokens_before=before, tokens_after=enough) == set()
    assert refused(trigger=trigger, budget=wide, target=None, tokens_before=before, tokens_after=enough + 1) == {
        "no_saving"
    }
    assert MIN_SAVING == 0.05


@pytest.mark.parametrize("trigger", ["manual", "advance"])
def test_by_hand_it_is_not_larger(trigger: str) -> None:
    """`larger`; neither target nor saving is asked for."""
    assert refused(trigger=trigger, tokens_before=700, tokens_after=701) == {"larger"}
    assert refused(trigger=trigger, tokens_before=700, tokens_after=700) == set()


def test_every_reason_is_told_at_once() -> None:
    """Not the first alone."""
    assert refused(summary="", messages=(RESULT,), tokens_after=1_100, tokens_before=1_100) == {
        "blank",
        "tool_pairs",
        "not_verbatim",
        "over_budget",
        "over_target",
        "no_saving",
    }
