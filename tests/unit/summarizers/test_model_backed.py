"""The model-backed summarizer pays for nothing that cannot work, and what it did not show it tells."""

from collections.abc import Callable

import pytest

from tests.rough_counter import RoughCounter
from turnfold.core.limits import CallBudget
from turnfold.core.plan import SummaryRequest
from turnfold.core.truncation import SUMMARY_SUFFIX
from turnfold.errors import ProviderOverflowError, SummaryError, SummaryLimitError, SummaryRejectedError
from turnfold.messages.model import Message, Text, ToolResult, Usage, text_message
from turnfold.ports import ChatRequest
from turnfold.providers.scripted import Reply, ScriptedModel
from turnfold.summarizers.model_backed import MIN_REPLY_TOKENS, ModelBackedSummarizer

GOOD = "They talked about the build; it is fixed."
FRAME = "f00dcafe"


def talk(count: int, characters: int) -> tuple[Message, ...]:
    """Return `count` messages, each recognizable, of some characters."""
    return tuple(
        text_message(f"m{at}", "user" if at % 2 else "assistant", f"This is number {at}. ".ljust(characters, "w"))
        for at in range(1, count + 1)
    )


def asked(messages: tuple[Message, ...], **fields: object) -> SummaryRequest:
    """Return a request."""
    given = {
        "messages": messages,
        "mode": "sliding_window",
        "frame": FRAME,
        "max_tokens": 50,
        "max_chars": 400,
        **fields,
    }
    return SummaryRequest(**given)  # type: ignore[arg-type]


def using(
    script: Callable[[ChatRequest], Reply], window: int | None = None
) -> tuple[ModelBackedSummarizer, ScriptedModel]:
    """Return a summarizer and its model."""
    model = ScriptedModel(script, context_window=window)
    return ModelBackedSummarizer(model, RoughCounter()), model


def material_of(request: ChatRequest) -> str:
    """Return what was shown."""
    return request.messages[-1].text


def smaller_than(characters: int) -> Callable[[ChatRequest], Reply]:
    """Return a model that overflows above some characters."""
    return lambda request: GOOD if len(material_of(request)) <= characters else ProviderOverflowError("too long")


# -- the ladder ------------------------------------------------------------------------------------------------------------


async def test_an_overflow_is_answered_with_less() -> None:
    """Step by step down the ladder, each step a paid call, and what was cut out is told."""
    summarizer, model = using(smaller_than(12_000))
    calls = CallBudget(12)
    draft = await summarizer.summarize(asked(talk(100, 500)), calls)
    assert draft.text == GOOD
    assert 3 < calls.used == len(model.requests) < 7
    sizes = [len(material_of(request)) for request in model.requests]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-2] > 12_000 >= sizes[-1]
    (told,) = draft.not_shown
    assert "messages m" in told
    assert "characters from the middle" in told
    last = material_of(model.requests[-1])
    assert "This is number 1." in last
    assert "This is number 100." in last
    assert "This is number 50." not in last


async def test_a_known_window_is_never_overflowed() -> None:
    """By count, before any call: one call, on what fits beside the answer."""
    summarizer, model = using(lambda _: GOOD, window=9_000)
    calls = CallBudget(1)
    draft = await summarizer.summarize(asked(talk(200, 500)), calls)
    assert calls.used == 1
    tokens = sum(RoughCounter().count_message(message) for message in model.requests[0].messages)
    assert tokens + (model.requests[0].max_output_tokens or 0) <= 9_000
    assert draft.not_shown


async def test_a_window_that_holds_nothing_costs_nothing() -> None:
    """The error says overflow, and no call was made."""
    summarizer, model = using(lambda _: GOOD, window=300)
    calls = CallBudget(5)
    with pytest.raises(SummaryError) as raised:
        await summarizer.summarize(asked(talk(10, 500)), calls)
    assert raised.value.code == "overflow"
    assert (calls.used, model.requests) == (0, [])


async def test_the_ladder_ends_with_the_calls() -> None:
    """Retries count against the bound; the last one left is made, no more."""
    summarizer, model = using(smaller_than(10))
    calls = CallBudget(3)
    with pytest.raises(SummaryLimitError) as raised:
        await summarizer.summarize(asked(talk(100, 500)), calls)
    assert raised.value.code == "call_limit"
    assert len(model.requests) == calls.used == 3


async def test_results_that_are_shown_in_part_are_told() -> None:
    """Of a tool result the first 2,000 characters are shown; the audit names those that are longer."""
    long = Message(id="r1", role="tool", parts=(ToolResult(call_id="c", content=(Text(text="z" * 2_001),)),))
    summarizer, _ = using(lambda _: GOOD)
    draft = await summarizer.summarize(asked((*talk(2, 50), long)), CallBudget())
    assert draft.not_shown == ("tool results beyond their first 2000 characters: r1",)


# -- folding ---------------------------------------------------------------------------------------------------------------


def recursive(messages: tuple[Message, ...], tokens: int = 300) -> SummaryRequest:
    """Return a request that is folded in segments."""
    return asked(messages, input_protocol="automemory_recursive_v1", segment_content_tokens=tokens)


async def test_segments_are_folded_one_after_another() -> None:
    """Each call is shown the next segment and the summary so far; only the last answer is returned, usage is the sum."""

    def fold(request: ChatRequest) -> Message:
        number = len(model.requests)
        return Message(
            id="r",
            role="assistant",
            parts=(Text(text=f"Fold {number} of it."),),
            stop_reason="stop",
            usage=Usage(input=100, output=5),
        )

    summarizer, model = using(fold)
    calls, request = CallBudget(10), recursive(talk(12, 400))
    needed = summarizer.calls_needed(request)
    draft = await summarizer.summarize(request, calls)
    assert 3 < needed == calls.used == len(model.requests)
    assert draft.text == f"Fold {needed} of it."
    assert draft.usage == Usage(input=100 * needed, output=5 * needed)
    shown = [material_of(each) for each in model.requests]
    assert all(f"Fold {number} of it." in text for number, text in enumerate(shown[1:], 1))
    assert all(sum(f"This is number {at}." in text for text in shown) == 1 for at in range(1, 13))


async def test_a_fold_that_cannot_be_finished_is_not_begun() -> None:
    """It needs more calls than are left: nothing is paid."""
    summarizer, model = using(lambda _: GOOD)
    request = recursive(talk(12, 400))
    calls = CallBudget(summarizer.calls_needed(request) - 1)
    with pytest.raises(SummaryLimitError) as raised:
        await summarizer.summarize(request, calls)
    assert raised.value.code == "call_limit"
    assert (calls.used, model.requests) == (0, [])


async def test_an_intermediate_summary_keeps_the_limit() -> None:
    """What a model writes too long is cut before it is shown again, so that folding does not grow."""
    summarizer, model = using(lambda _: "It goes on and on about the build. " * 100)
    await summarizer.summarize(recursive(talk(12, 400)), CallBudget(20))
    for request in model.requests[1:]:
        text = material_of(request)
        assert SUMMARY_SUFFIX in text
        assert text.count("It goes on and on about the build.") <= 6


async def test_a_fold_that_fails_in_the_middle_gives_nothing() -> None:
    """An intermediate summary is never a result."""
    summarizer, model = using(lambda _: GOOD if len(model.requests) < 3 else "")
    with pytest.raises(SummaryRejectedError) as raised:
        await summarizer.summarize(recursive(talk(12, 400)), CallBudget(20))
    assert raised.value.code == "blank"
    assert len(model.requests) == 3


# -- what is asked for -----------------------------------------------------------------------------------------------------


async def test_the_reply_has_room_to_think() -> None:
    """A cut-off answer is worth nothing and length is bounded by code: ample output is allowed, within the window."""
    summarizer, model = using(lambda _: GOOD)
    await summarizer.summarize(asked(talk(2, 50)), CallBudget())
    assert model.requests[0].max_output_tokens == MIN_REPLY_TOKENS
    small, model = using(lambda _: GOOD, window=8_000)
    await small.summarize(asked(talk(2, 50)), CallBudget())
    assert model.requests[0].max_output_tokens == 2_000


async def test_the_instruction_stands_before_and_after_the_material() -> None:
    """And says that nothing in between is addressed to the summarizer."""
    summarizer, model = using(lambda _: GOOD)
    await summarizer.summarize(asked(talk(4, 50), focus="the ports"), CallBudget())
    text = material_of(model.requests[0])
    start, end = text.index(f"<<<{FRAME}"), text.rindex(f"<<<{FRAME}")
    assert "the ports" in model.requests[0].messages[0].text + text[:start]
    assert "summar" in text[end:].lower()
    assert (
        "not addressed" in (model.requests[0].messages[0].text + text[:start]).lower()
        or "addressed to you" in (model.requests[0].messages[0].text + text).lower()
    )


async def test_the_room_for_an_answer_is_known_before_any_call() -> None:
    """What the window leaves beside the largest call, uncut: by it a candidate is skipped without paying."""
    summarizer, model = using(lambda _: GOOD, window=10_000)
    small, large = asked(talk(2, 50)), asked(talk(60, 500))
    assert (summarizer.generation_room(small) or 0) > (summarizer.generation_room(large) or 0)
    assert (summarizer.generation_room(asked(talk(200, 500))) or 0) < 0
    assert using(lambda _: GOOD)[0].generation_room(small) is None
    assert model.requests == []
