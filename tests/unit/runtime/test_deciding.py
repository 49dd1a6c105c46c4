"""What a compactor decides where something goes wrong on the way: the turn is served, and the reasons say what happened."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.unit.runtime.deciding import UPCOMING, brief, decided, ids, make_compactor, steps, turns
from turnfold.config.settings import resolve
from turnfold.core.budget import Budget
from turnfold.core.checkpoint import Audit, Checkpoint, extend_coverage
from turnfold.core.plan import SummaryDraft, SummaryRequest
from turnfold.core.policy import Policy
from turnfold.core.situation import Situation
from turnfold.core.summary_row import summary_message
from turnfold.core.view import render_view
from turnfold.errors import ConfigError, ContextOverflowError, FloorError
from turnfold.messages.model import Message, text_message
from turnfold.summarizers.scripted import HANG, ScriptedSummarizer
from turnfold.tokens import make_counter

POLICY = Policy(max_compaction_ms=150)


def checkpoint_over(covered: tuple[Message, ...], **fields: Any) -> Checkpoint:
    """Return version 1 with a short summary of `covered`."""
    return Checkpoint(
        version=1,
        created_at=1,
        fingerprint="f",
        summary="They fixed the build.",
        coverage=extend_coverage(None, covered),
        audit=Audit(trigger="manual", mode="all"),
        **fields,
    )


def situation_after(covered: tuple[Message, ...], history: tuple[Message, ...], **fields: Any) -> Situation:
    """Return the situation in which `covered` is summarized and `history` is not."""
    request_id = fields["request"].id if fields.get("request") else None
    checkpoint = checkpoint_over(covered, open_request_id=request_id)
    return Situation(checkpoint=checkpoint, summary=summary_message(checkpoint, POLICY), history=history, **fields)


# -- a summarizer that fails on a request that does not fit ------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (HANG, "timeout"),
        (ValueError("boom"), "summarizer_raised"),
        (asyncio.CancelledError(), "summarizer_raised"),
        (TimeoutError("the endpoint's own"), "timeout"),
        (None, "no_draft"),
        (SummaryDraft(text=None), "no_draft"),  # type: ignore[arg-type]
        (SummaryDraft(text=" \n"), "blank"),
        ("", "blank"),
        ("I'm sorry, but I cannot help with that.", "refused"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
async def test_an_overfull_turn_is_served_whatever_the_summarizer_does(answer: Any, code: str) -> None:
    """Also when it hangs until the time is used up and an older summary stands in the way of trimming: by extraction."""
    situation = situation_after(turns(5), turns(30, first=6))
    decision = await decided(
        make_compactor(ScriptedSummarizer([answer]), POLICY), situation, Budget(context_window=2_000)
    )
    assert decision.outcome == "compacted"
    assert decision.tokens <= 2_000
    assert [reason.code for reason in decision.reasons] == [code, "fallback"]
    assert decision.verdict == "failed"
    assert ids(decision.messages)[-4:] == ["u34", "a34", "u35", "a35"]


async def test_cancelling_the_caller_cancels_the_turn() -> None:
    """A cancellation that is meant for the turn is no answer of the summarizer's."""
    deciding = asyncio.ensure_future(
        decided(make_compactor(ScriptedSummarizer([HANG])), Situation(history=turns(30)), Budget(context_window=1_000))
    )
    await asyncio.sleep(0.01)
    deciding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deciding


async def test_a_failure_is_not_taken_for_a_summary_that_saves_nothing() -> None:
    """Masks that were refused because they save too little say nothing of the summarizer that fails after them."""
    rows = (text_message("q", "user", "Go on."), *steps(6, characters=60))
    fixed = (text_message("system", "system", "s" * 7_000),)
    decision = await decided(
        make_compactor(ScriptedSummarizer([""])), Situation(fixed=fixed, history=rows), Budget(context_window=2_340)
    )
    assert decision.verdict == "failed"


# -- the floor ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("characters", [200, 1_600, 2_400])
@pytest.mark.parametrize("mask", [True, False])
async def test_a_covered_request_of_the_open_turn_is_reckoned_with(characters: int, mask: bool) -> None:
    """One long turn compacts again and again, however long the request that every view shows again."""
    request = text_message("q", "user", "Please do all of this. ".ljust(characters, "z"))
    situation = situation_after((request, *steps(6)), steps(20, first=7), request=request)
    budget = Budget(context_window=1_500)
    decision = await decided(make_compactor(brief(), Policy(mask_tool_results=mask)), situation, budget)
    assert decision.outcome == "compacted"
    assert decision.tokens <= budget.trigger_line
    assert request in decision.messages


async def test_a_request_that_alone_is_too_large_is_named() -> None:
    """The error says that it is the open turn's request that leaves no room."""
    request = text_message("q", "user", "z" * 8_000)
    situation = situation_after((request, *steps(2)), steps(2, first=3), request=request)
    with pytest.raises(FloorError, match="the open turn's request takes 2"):
        await decided(make_compactor(brief()), situation, Budget(context_window=1_500))


@pytest.mark.parametrize("counter", ["chars4", "bpe", "script_aware"])
@pytest.mark.parametrize("characters", range(0, 5_000, 500))
async def test_no_plan_leaves_a_summary_without_room(counter: str, characters: int) -> None:
    """Whatever the floor takes, the summary message is squeezed to something that can be said, never to its envelope."""
    fixed = (text_message("system", "system", "so it is. " * (characters // 10)),)
    compactor = make_compactor(brief(), counter=make_counter(counter))
    try:
        decision = await decided(
            compactor, Situation(fixed=fixed, history=turns(8, characters=240)), Budget(context_window=1_400)
        )
    except FloorError:
        return
    floor = compactor.counter.request_overhead + compactor.counter.count_message(fixed[0])
    if floor + 110 > 1_400:  # the window itself has no room for a summary in its envelope
        return
    assert "no_room" not in {reason.code for reason in decision.reasons}
    assert decision.outcome in {"unchanged", "compacted"}


@pytest.mark.parametrize("counter", ["chars4", "bpe", "script_aware"])
async def test_the_least_summary_that_settings_allow_can_be_written(counter: str) -> None:
    """90 tokens hold the envelope and a line; fewer are refused when the settings are read, not at every compaction."""
    policy = resolve(flags={"max_summary_tokens": 90}, environment={}, file={}).settings.policy()
    compactor = make_compactor(brief("Fixed."), policy, counter=make_counter(counter))
    decision = await decided(compactor, Situation(history=turns(40)), Budget(context_window=2_000))
    assert decision.outcome == "compacted"
    assert [reason.code for reason in decision.reasons] == []
    with pytest.raises(ConfigError, match="max_summary_tokens: 89 is out of range"):
        resolve(flags={"max_summary_tokens": 89}, environment={}, file={})


# -- pins --------------------------------------------------------------------------------------------------------------


async def test_a_pinned_result_is_not_masked() -> None:
    """A pin holds against masking too, and what was masked before it was pinned shows again at the next compaction."""
    rows = (text_message("q", "user", "Look into it."), *steps(12))
    pinned = frozenset({"s2", "r2", "s3", "r3"})
    compactor, budget = make_compactor(brief()), Budget(context_window=1_500)
    first = await decided(compactor, Situation(history=rows), budget)
    assert first.checkpoint is not None
    assert {"r2", "r3"} <= {mask.message_id for mask in first.checkpoint.masks}
    situation = Situation(history=(*rows, *steps(8, first=13)), checkpoint=first.checkpoint, pinned=pinned)
    second = await decided(compactor, situation, budget)
    assert second.outcome == "compacted"
    assert [row for row in second.messages if row.id in pinned] == [row for row in rows if row.id in pinned]
    assert second.checkpoint is not None
    assert {mask.message_id for mask in second.checkpoint.masks}.isdisjoint(pinned)


async def test_a_pin_that_cannot_be_sent_as_it_is_does_not_block_compaction() -> None:
    """A pinned result whose call is nowhere is shown as text, in every view, and later compactions go on."""
    orphan = steps(1)[1]
    situation = situation_after((orphan, *turns(3)), turns(30, first=4), covered_pins=(orphan,), shown_pins=(orphan,))
    decision = await decided(make_compactor(brief()), situation, Budget(context_window=1_500))
    assert decision.outcome == "compacted"
    assert any("output 1" in row.text for row in decision.messages)


# -- trimming ----------------------------------------------------------------------------------------------------------


async def test_a_trimmed_view_still_tells_of_memory() -> None:
    """Where the oldest groups are left out of one turn, memory updates and reminders after them are not."""
    update = text_message("memory", "user", "The port is 5433.", kind="memory_update")
    rows = (*turns(10), update, *turns(12, first=11))
    failing = make_compactor(ScriptedSummarizer([""]), Policy(fallback_on_failure=False))
    decision = await decided(failing, Situation(history=rows), Budget(context_window=1_500))
    assert decision.outcome == "trimmed"
    assert "u1" not in ids(decision.messages)
    assert update in decision.messages


async def test_nothing_can_be_trimmed_from_behind_a_summary() -> None:
    """A session never drops what its summary connects to: the error has the numbers."""
    failing = make_compactor(ScriptedSummarizer([""]), Policy(fallback_on_failure=False))
    situation = situation_after(turns(5), turns(30, first=6))
    with pytest.raises(ContextOverflowError) as raised:
        await decided(failing, situation, Budget(context_window=1_500))
    assert (raised.value.input_budget, raised.value.floor) == (1_500, 0)


# -- what is asked -----------------------------------------------------------------------------------------------------


async def test_the_summarizer_is_asked_for_what_leaves_and_no_more() -> None:
    """It sees the messages that the plan covers, without reminders and memory updates, and the previous summary."""
    asked: list[SummaryRequest] = []

    def answer(request: SummaryRequest) -> SummaryDraft:
        asked.append(request)
        return SummaryDraft(text="Fixed.")

    reminder = text_message("todo", "user", "To do: nothing.", kind="reminder")
    history = (*turns(3, first=6), reminder, *turns(20, first=9))
    decision = await decided(
        make_compactor(ScriptedSummarizer(answer)),
        situation_after(turns(5), history, incoming=(text_message("now", "user", "And now?"),)),
        Budget(context_window=1_500),
        upcoming=UPCOMING,
    )
    (request,) = asked
    assert decision.plan is not None
    rows = tuple(row for row in history if row.kind == "message")
    assert request.messages == rows[: decision.plan.cutoff_index]
    assert request.previous_summary == "They fixed the build."
    assert request.current_input == "And now?"


# -- statistics ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_text", [True, False])
async def test_statistics_are_those_of_the_view_that_is_sent(in_text: bool) -> None:
    """In the audit, in the summary message's metadata and, where wanted, in its text: tokens and messages after."""
    policy = Policy(stats_in_text=in_text)
    compactor = make_compactor(brief(), policy, counter=make_counter("chars4"))
    decision = await decided(compactor, Situation(history=turns(40)), Budget(context_window=2_000))
    assert decision.checkpoint is not None
    assert decision.summary is not None
    stats = decision.summary.metadata["compaction"]["stats"]
    audit = decision.checkpoint.audit
    assert (audit.tokens_after, audit.messages_after) == (decision.tokens, len(decision.messages))
    assert (stats["context_tokens_after"], stats["messages_count_after"]) == (decision.tokens, len(decision.messages))
    assert ("compaction_stats" in decision.summary.text) == in_text
    assert summary_message(decision.checkpoint, policy) == decision.summary


@pytest.mark.parametrize("in_text", [True, False])
async def test_a_view_with_more_masks_is_what_its_checkpoint_shows(in_text: bool) -> None:
    """The summary carried over by a compaction of masks alone stands in this view as it will in the next."""
    policy = Policy(stats_in_text=in_text)
    compactor = make_compactor(brief(), policy, counter=make_counter("chars4"))
    request = text_message("q", "user", "Please do all of this.")
    covered, history = (request, *steps(6)), steps(16, first=7)
    checkpoint = checkpoint_over(covered, open_request_id="q")
    old = Situation(
        checkpoint=checkpoint, summary=summary_message(checkpoint, policy), request=request, history=history
    )
    decision = await decided(compactor, old, Budget(context_window=1_800))
    assert decision.plan is not None
    assert decision.plan.mode == "mask"
    assert decision.checkpoint is not None
    shown = summary_message(decision.checkpoint, policy)
    later = msgspec.structs.replace(old, checkpoint=decision.checkpoint, summary=shown)
    assert render_view(later.parts_before()).messages == decision.messages
