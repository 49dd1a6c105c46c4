"""What Compact may cost at most: calls, candidates, time; and how often it calls in a long conversation."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from tests.acceptance.compact_product import SEED_OPTIONS, SEED_POLICY, seed_runtime, turn, turns
from turnfold.core.checkpoint import CheckpointKey
from turnfold.core.policy import Policy
from turnfold.errors import ProviderOverflowError, ProviderUnavailableError
from turnfold.messages.model import Message, text_message
from turnfold.ports import ChatRequest
from turnfold.providers.scripted import HANG, Reply, ScriptedModel
from turnfold.runtime.decision import Prepared
from turnfold.runtime.requests import CompactRequest
from turnfold.stores.memory import MemoryStore
from turnfold.summarizers.model_backed import ModelBackedSummarizer
from turnfold.testing.virtual_time import VirtualTime, run_in_virtual_time
from turnfold.tokens import make_counter

COUNTER = make_counter("o200k_base")
KEY = CheckpointKey(conversation_id="c", scenario="rp")
LONG_ANSWER = " ".join(f"Fact {number}: the lantern of the harbor was lit." for number in range(200))
NOW = text_message("now", "user", "And then?")


def _request(history: tuple[Message, ...], incoming: Message = NOW, **changes: object) -> CompactRequest:
    request = CompactRequest(conversation_id="c", role_id="lia", history=history, incoming=(incoming,))
    return msgspec.structs.replace(request, **changes)


def _policy(**changes: object) -> Policy:
    return msgspec.structs.replace(SEED_POLICY, **changes)


def _once(
    model: ScriptedModel, history: tuple[Message, ...], policy: Policy = SEED_POLICY
) -> tuple[Prepared, float, MemoryStore]:
    """Prepare one request; return the result, the seconds that passed, and the store."""
    store = MemoryStore()

    async def main(time: VirtualTime) -> tuple[Prepared, float]:
        runtime = seed_runtime(store, ModelBackedSummarizer(model, COUNTER), time, policy=policy)
        prepared = await runtime.prepare(_request(history))
        return prepared, time.seconds

    return (*run_in_virtual_time(main), store)


def _slowly(reply: Reply, seconds: float) -> Callable[[ChatRequest], Awaitable[Reply]]:
    async def script(_: ChatRequest) -> Reply:
        await asyncio.sleep(seconds)
        return reply

    return script


def test_the_seeds_arithmetic() -> None:
    """8,192 tokens of window less 2,048 of output less 512 of margin leave 5,632; at 0.8 the line is 4,505."""
    runtime = seed_runtime(MemoryStore(), ModelBackedSummarizer(ScriptedModel([]), COUNTER), VirtualTime())
    budget = runtime.budget(_request(()))
    assert (budget.input_budget, budget.trigger_line) == (5_632, 4_505)
    assert runtime.budget(_request((), max_output=1_024)).input_budget == 6_656


# -- calls and candidates ------------------------------------------------------------------------------------------

BAD_REPLIES: dict[str, Reply] = {
    "down": ProviderUnavailableError("down", status=503),
    "blank": " ",
    "overflow": ProviderOverflowError("too long"),
    "refusal": "I'm sorry, but I can't help with that.",
}


@pytest.mark.parametrize("reply", BAD_REPLIES)
@pytest.mark.parametrize("max_calls", [1, 2, 5])
@pytest.mark.parametrize("max_candidates", [1, 3, 24])
def test_calls_and_candidates_stay_within_their_limits(reply: str, max_calls: int, max_candidates: int) -> None:
    """However the model fails, no more calls are paid and no more candidates are tried than allowed."""
    model = ScriptedModel(lambda _: BAD_REPLIES[reply])
    policy = _policy(max_model_calls=max_calls, max_candidate_attempts=max_candidates)
    prepared, _, _ = _once(model, turns(1, 40, 200), policy)
    assert 1 <= len(model.requests) == prepared.calls <= max_calls
    assert 1 <= prepared.candidates <= max_candidates
    assert prepared.outcome == "trimmed"
    assert prepared.tokens <= prepared.budget.input_budget


def test_a_summarizer_without_room_is_not_called() -> None:
    """A candidate that leaves the summarizer less than `min_generation_tokens` is skipped without a call."""
    model = ScriptedModel([], context_window=2_000)
    prepared, _, _ = _once(model, turns(1, 26, 200))
    assert (prepared.calls, len(model.requests)) == (0, 0)
    assert prepared.outcome == "unchanged"
    assert {reason.code for reason in prepared.reasons} == {"no_generation_room"}
    assert prepared.candidates >= 1


def test_a_candidate_that_could_never_be_adopted_is_not_paid() -> None:
    """Where a smaller part could not bring the request under the line, no call is spent on it after the largest failed."""
    model = ScriptedModel(lambda _: ProviderUnavailableError("down"))
    prepared, _, _ = _once(model, turns(1, 200, 200), _policy(max_model_calls=9))
    assert (prepared.calls, prepared.candidates, prepared.outcome) == (1, 1, "trimmed")


def test_kept_groups_over_the_line_are_no_reason_to_lose_history() -> None:
    """Where the kept groups and the fixed prompt leave no room under the line, the history is summarized, not left out."""
    store, role = MemoryStore(), text_message("role", "system", "lantern harbor " * 1_900)
    history = turns(1, 9, 350)

    async def main(time: VirtualTime) -> Prepared:
        summarizer = ModelBackedSummarizer(ScriptedModel(["Earlier, the lantern was lit."]), COUNTER)
        runtime = seed_runtime(store, summarizer, time)
        return await runtime.prepare(_request(history, fixed_prompt=(role,)))

    prepared = run_in_virtual_time(main)
    assert prepared.tokens_before > prepared.budget.input_budget
    assert (prepared.outcome, prepared.persistence) == ("compacted", "saved")
    assert prepared.budget.trigger_line < prepared.tokens <= prepared.budget.input_budget


# -- time ----------------------------------------------------------------------------------------------------------

TICK_MS = 1


@pytest.mark.parametrize("limit_ms", [1_000, 30_000, 120_000])
def test_a_model_that_hangs_is_given_up_at_the_limit(limit_ms: int) -> None:
    """The candidate phase ends at `max_compaction_ms`, to the tick of the clock."""
    prepared, seconds, _ = _once(ScriptedModel([HANG]), turns(1, 26, 200), _policy(max_compaction_ms=limit_ms))
    assert limit_ms <= seconds * 1000 <= limit_ms + TICK_MS
    assert prepared.milliseconds <= limit_ms + TICK_MS
    assert {"timeout", "time_limit"} & {reason.code for reason in prepared.reasons}
    assert prepared.outcome == "unchanged"


@pytest.mark.parametrize("seconds_a_call", [0.4, 7, 40, 59.999, 60, 61])
def test_slow_failures_share_one_limit(seconds_a_call: float) -> None:
    """Calls that fail slowly, one after another, end at `max_compaction_ms` all together."""
    model = ScriptedModel(_slowly(" ", seconds_a_call))
    policy = _policy(max_model_calls=50, max_compaction_ms=60_000)
    prepared, seconds, _ = _once(model, turns(1, 27, 180), policy)
    assert seconds * 1000 <= 60_000 + TICK_MS
    assert prepared.calls == len(model.requests)


def test_a_slow_answer_within_the_limit_is_used() -> None:
    """An answer a moment before the limit is adopted; the time is told."""
    model = ScriptedModel(_slowly("The lantern was lit.", 119.9))
    prepared, _, _ = _once(model, turns(1, 26, 200))
    assert (prepared.outcome, prepared.persistence) == ("compacted", "saved")
    assert 119_900 <= prepared.milliseconds <= 119_900 + TICK_MS


# -- recursive segments --------------------------------------------------------------------------------------------


def _recursive(max_calls: int, segment: int = 1_000) -> Policy:
    return _policy(input_protocol="automemory_recursive_v1", segment_content_tokens=segment, max_model_calls=max_calls)


def _stored_summaries(store: MemoryStore) -> list[str | None]:
    records = asyncio.run(store.newest(KEY, limit=100))
    return [record.checkpoint.summary for record in records if record.checkpoint]


def test_segments_are_folded_and_only_the_last_summary_is_stored() -> None:
    """Each segment's call is given the summary so far; one checkpoint is stored, with the final one."""
    replies = [f"Summary after part {number}." for number in range(1, 9)]
    model = ScriptedModel(replies)
    prepared, _, store = _once(model, turns(1, 26, 200), _recursive(8))
    assert prepared.outcome == "compacted"
    assert 3 <= prepared.calls == len(model.requests) <= 8
    for number, request in enumerate(model.requests[1:], 1):
        assert f"Summary after part {number}." in request.messages[-1].text
    assert [summary and summary.split("\n")[0] for summary in _stored_summaries(store)] == [
        f"Summary after part {prepared.calls}."
    ]


def test_a_recursive_plan_beyond_the_calls_left_is_not_started() -> None:
    """A candidate that needs more calls than are left costs nothing; a smaller one that can be finished is taken."""
    model = ScriptedModel(lambda _: "The lantern was lit.")
    prepared, _, store = _once(model, turns(1, 26, 200), _recursive(3))
    assert (prepared.outcome, prepared.persistence) == ("compacted", "saved")
    assert prepared.candidates > 1
    assert prepared.calls == len(model.requests) <= 3
    assert len(_stored_summaries(store)) == 1


def test_nothing_is_paid_when_no_candidate_can_be_finished() -> None:
    """With one call and segments smaller than any turn, no call is made at all, and nothing is stored."""
    model = ScriptedModel(lambda _: "The lantern was lit.")
    prepared, _, store = _once(model, turns(1, 26, 200), _recursive(1, segment=100))
    assert (prepared.calls, len(model.requests), prepared.outcome) == (0, 0, "unchanged")
    assert "call_limit" in {reason.code for reason in prepared.reasons}
    assert _stored_summaries(store) == []


def test_a_failing_segment_stores_nothing() -> None:
    """When a later segment fails, the summaries of the earlier ones are not stored."""
    model = ScriptedModel(["Summary after part 1.", ProviderUnavailableError("down")])
    prepared, _, store = _once(model, turns(1, 26, 200), _recursive(8))
    assert prepared.outcome == "unchanged"
    assert prepared.calls == len(model.requests) >= 2
    assert _stored_summaries(store) == []


# -- a mature conversation -----------------------------------------------------------------------------------------

ROLE = text_message("role", "system", "gate keeper lantern harbor " * 250)


@pytest.mark.parametrize("carried", [2_000, 40], ids=["all of it", "the last 40 messages"])
def test_a_mature_conversation_seldom_calls(carried: int) -> None:
    """2,000 messages, a window of 8,192, a role prompt of 1,000 tokens, turns of 200: at most one call in 8 turns."""
    assert 990 <= COUNTER.count_message(ROLE) <= 1_010
    model = ScriptedModel(lambda _: LONG_ANSWER)

    async def main(time: VirtualTime) -> list[int]:
        runtime = seed_runtime(MemoryStore(), ModelBackedSummarizer(model, COUNTER), time)
        history = turns(1, 1_000, 200)
        called = []
        for number in range(1_001, 1_041):
            said, answered = turn(number, 200)
            before = len(model.requests)
            request = _request(history[-carried:], said, fixed_prompt=(ROLE,))
            prepared = await runtime.prepare(request)
            assert prepared.tokens <= prepared.budget.input_budget
            assert prepared.outcome in ("compacted", "reused")
            called += [number] * (len(model.requests) - before)
            history = (*history, said, answered)
        return called

    called = run_in_virtual_time(main)
    assert called[0] == 1_001
    assert all(later - earlier >= 8 for earlier, later in itertools.pairwise(called))
    assert 190 <= sum(COUNTER.count_message(message) for message in turn(500, 200)) <= 210


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_the_coverage_advances_before_it_leaves_the_carried_history(groups: int) -> None:
    """While the history slides, the coverage moves on before its end is lost: no turn is without the summary."""
    model = ScriptedModel(lambda request: f"Summary {len(model.requests)}.")

    async def main(time: VirtualTime) -> list[tuple[str, str | None, int | None]]:
        options = msgspec.structs.replace(SEED_OPTIONS, advance_groups=groups)
        runtime = seed_runtime(MemoryStore(), ModelBackedSummarizer(model, COUNTER), time, options=options)
        history = turns(1, 30, 200)
        seen: list[tuple[str, str | None, int | None]] = []
        for number in range(31, 80):
            said, answered = turn(number, 20)
            prepared = await runtime.prepare(_request(history[-20:] if number > 31 else history, said))
            seen.append((prepared.outcome, prepared.trigger, prepared.version))
            history = (*history, said, answered)
        return seen

    seen = run_in_virtual_time(main)
    assert all(outcome in ("compacted", "reused") for outcome, _, _ in seen)
    assert {trigger for outcome, trigger, _ in seen if outcome == "compacted"} == {"context_pressure", "advance"}
    versions = [version or 0 for _, _, version in seen]
    assert versions == sorted(versions)
    assert versions[-1] > 5
