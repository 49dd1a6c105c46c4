"""A summarizer that misbehaves costs a summary and nothing else: no message, no turn, no silence.

On a SQLite file, through a model-backed summarizer, so that every check on the way is the real one.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import msgspec
import pytest

from tests.small_sessions import KEY, exchange
from turnfold.core.budget import Budget
from turnfold.core.policy import Policy
from turnfold.errors import ProviderAuthError, ProviderOverflowError, ProviderRateLimitError
from turnfold.messages.model import Message, Reasoning, Text, ToolCall, text_message
from turnfold.ports import ChatRequest
from turnfold.providers.scripted import HANG, Reply, ScriptedModel
from turnfold.runtime.compactor import Compactor
from turnfold.runtime.decision import Prepared
from turnfold.runtime.events import CompactionFailed, CompactionFinished, Event
from turnfold.session import Session
from turnfold.stores.sqlite import SqliteStore
from turnfold.summarizers.extractive import ExtractiveSummarizer
from turnfold.summarizers.model_backed import ModelBackedSummarizer
from turnfold.tokens.chars4 import Chars4Counter
from turnfold.wiring import SystemClock, new_frame

BUDGET = Budget(context_window=1_000)
"""Compacts above 800 tokens; an exchange takes 100."""

POLICY = Policy(max_compaction_ms=20_000)
IMPATIENT = msgspec.structs.replace(POLICY, max_compaction_ms=60)
STRUCTURED = msgspec.structs.replace(POLICY, output_format="structured_json", length_policy="reject")
GOOD = "The user asked about tickets; each one is done in the build of its number."

Script = Callable[[ChatRequest], Reply | Awaitable[Reply]]


def reply(*parts: Text | Reasoning | ToolCall, stop_reason: str = "stop") -> Message:
    """Return a model's reply."""
    return Message(id="r", role="assistant", parts=parts, stop_reason=stop_reason)


def material_back(request: ChatRequest) -> str:
    """Answer with what was sent, the markers taken off."""
    lines = request.messages[-1].text.splitlines()
    return "\n".join(line for line in lines if not line.startswith("<<<"))


def instructions_back(request: ChatRequest) -> str:
    """Answer with the instructions."""
    return request.messages[0].text


BAD: dict[str, tuple[Reply | Script, Policy, str]] = {
    "raises": (ValueError("boom"), POLICY, "summarizer_raised"),
    "rate limited": (ProviderRateLimitError("slow down"), POLICY, "provider"),
    "no credentials": (ProviderAuthError("wrong key"), POLICY, "provider"),
    "always overflows": (ProviderOverflowError("too long"), POLICY, "overflow"),
    "hangs": (HANG, IMPATIENT, "timeout"),
    "nothing": (reply(), POLICY, "blank"),
    "blanks": (" \n\t ", POLICY, "blank"),
    "refuses": ("I'm sorry, but I can't help with summarizing this conversation.", POLICY, "refused"),
    "refuses in Chinese": ("抱歉，我无法总结这段对话。", POLICY, "refused"),
    "refuses by stop reason": (reply(Text(text="It is"), stop_reason="content_filter"), POLICY, "refused"),
    "echoes the prompt": (instructions_back, POLICY, "echo"),
    "echoes the transcript": (material_back, POLICY, "echo"),
    "goes on": ("[assistant] Answer 9: it is done.", POLICY, "continued"),
    "broken JSON": ('{"canonical": ["a"], "interaction": ', STRUCTURED, "broken_json"),
    "other JSON": ('{"canonical": "a", "summary": "b"}', STRUCTURED, "incomplete_json"),
    "prose for JSON": (GOOD, STRUCTURED, "broken_json"),
    "ten times the limit": ('{"canonical": "' + "a " * 4_000 + '", "interaction": "", "open_threads": ""}', STRUCTURED, "too_long"),
    "tool call": (reply(ToolCall(id="c1", name="search", arguments="{}"), stop_reason="tool_calls"), POLICY, "tool_call"),
    "only reasoning": (reply(Reasoning(text="Let me think about it.")), POLICY, "reasoning_only"),
    "only thinking tags": ("<think>The user wants</think>", POLICY, "reasoning_only"),
    "cut off": (reply(Text(text="The user asked about"), stop_reason="length"), POLICY, "cut_off"),
    "aborted": (reply(Text(text="The user asked"), stop_reason="aborted"), POLICY, "aborted"),
}  # fmt: skip


def model_of(given: Reply | Script) -> ScriptedModel:
    """Return a model that answers so every time."""
    return ScriptedModel(given if callable(given) else lambda _: given)


@asynccontextmanager
async def opened(
    path: Path, model: ScriptedModel, policy: Policy = POLICY, *, told: list[Event] | None = None
) -> AsyncIterator[Session]:
    """Open the file anew, as another process would, and a session in it."""
    counter, numbers = Chars4Counter(), count(1)
    compactor = Compactor(
        counter=counter,
        summarizer=ModelBackedSummarizer(model, counter),
        fallback=ExtractiveSummarizer(counter.count_text),
        policy=policy,
        clock=SystemClock(),
        new_frame=new_frame,
    )
    async with SqliteStore(path) as store:
        new_id = lambda: f"new{next(numbers)}"  # noqa: E731 - a source of ids
        listener = None if told is None else told.append
        session = Session(store, KEY, compactor, budget=BUDGET, new_id=new_id, system="Be brief.", listener=listener)
        async with session:
            yield session


async def say(session: Session, first: int, last: int) -> None:
    """Append exchanges `first` to `last`."""
    for number in range(first, last + 1):
        await session.append(*exchange(number, characters=400)[:1])
        await session.append(*exchange(number, characters=400)[1:])


async def all_said(session: Session) -> list[Message]:
    """Return every message of the log, without summaries."""
    return [entry.message for entry in await session.store.read(KEY) if entry.message.kind == "message"]


def codes(prepared: Prepared) -> list[str]:
    """Return the codes of the reasons."""
    return [reason.code for reason in prepared.reasons]


@pytest.mark.parametrize("name", BAD)
async def test_pressure_with_a_bad_summarizer(name: str, tmp_path: Path) -> None:
    """Above the trigger and within the budget: the old view is sent, the reason is told, the log is whole."""
    given, policy, code = BAD[name]
    told: list[Event] = []
    async with opened(tmp_path / "s.db", model_of(given), policy, told=told) as session:
        await say(session, 1, 4)
        await session.append(text_message("now", "user", "And now? " + "w" * 700))
        before = await all_said(session)
        prepared = await session.prepare()
        assert BUDGET.trigger_line < prepared.tokens <= BUDGET.input_budget
        assert (prepared.outcome, prepared.persistence) == ("unchanged", "not_needed")
        assert prepared.messages[1:] == tuple(before)
        assert codes(prepared) == [code]
        assert [event.reasons for event in told if isinstance(event, CompactionFailed)] == [prepared.reasons]
        assert await all_said(session) == before
        assert (await session.store.verify()).problems == ()


@pytest.mark.parametrize("name", BAD)
async def test_an_overfull_conversation_with_a_bad_summarizer(name: str, tmp_path: Path) -> None:
    """Over the budget: the turn is served by code, what is newest stands verbatim, and nothing is lost."""
    given, policy, code = BAD[name]
    async with opened(tmp_path / "s.db", model_of(given), policy) as session:
        await say(session, 1, 20)
        incoming = text_message("now", "user", "And now?")
        await session.append(incoming)
        before = await all_said(session)
        prepared = await session.prepare()
        assert prepared.tokens <= BUDGET.input_budget
        assert (prepared.outcome, prepared.persistence) == ("compacted", "saved")
        assert codes(prepared) == [code, "fallback"]
        assert prepared.messages[-5:] == (*before[-5:-1], incoming)
        assert prepared.summary
        assert await all_said(session) == before
        assert (await session.store.verify()).problems == ()
    async with opened(tmp_path / "s.db", model_of(GOOD), policy) as session:
        assert (await session.view()).messages == prepared.messages


async def test_ten_times_the_limit_is_cut(tmp_path: Path) -> None:
    """Plain text that ignores its limit is cut at a sentence and adopted, the message that shows it within its allowance."""
    told: list[Event] = []
    long = "Each ticket was done in its build. " * 400
    async with opened(tmp_path / "s.db", model_of(long), told=told) as session:
        await say(session, 1, 20)
        prepared = await session.prepare()
        assert prepared.outcome == "compacted"
        assert prepared.plan is not None
        (shown,) = [message for message in prepared.messages if message.kind == "summary"]
        assert Chars4Counter().count_message(shown) <= prepared.plan.allowance
        assert "[summary truncated to fit]" in (prepared.summary or "")
        assert any(isinstance(event, CompactionFinished) for event in told)


# -- breakers --------------------------------------------------------------------------------------------------------------


class Rounds:
    """Turns of a session, each with a compaction under pressure, and how often the model was called for it."""

    def __init__(self, path: Path, *, answer: Reply = "", policy: Policy = POLICY) -> None:
        self.path, self.policy, self.answer, self.number = path, policy, answer, 20
        self.model = ScriptedModel(lambda _: self.answer)

    async def start(self) -> None:
        """Say so much that every later turn has something to compact."""
        async with opened(self.path, self.model, self.policy) as session:
            await say(session, 1, 20)

    async def round(self, *, turns: int = 1, manual: bool = False) -> tuple[int, list[str]]:
        """Open the file, add turns, compact; return the calls made and the reasons' codes."""
        calls = len(self.model.requests)
        async with opened(self.path, self.model, self.policy) as session:
            await say(session, self.number + 1, self.number + turns)
            self.number += turns
            prepared = await (session.compact() if manual else session.prepare(trigger="context_pressure"))
            assert prepared.tokens <= BUDGET.input_budget
            assert len(await all_said(session)) == 2 * self.number
        return len(self.model.requests) - calls, codes(prepared)

    async def open_breaker(self) -> None:
        """Fail three times."""
        await self.start()
        for _ in range(3):
            calls, _ = await self.round()
            assert calls == 1


async def test_three_failures_open_the_breaker_for_eight_turns_and_over_restarts(tmp_path: Path) -> None:
    """No model is called for seven closed turns, each of them in another process; with the eighth it is tried again, once."""
    rounds = Rounds(tmp_path / "s.db")
    await rounds.open_breaker()
    for _ in range(7):
        calls, said = await rounds.round()
        assert (calls, said[0]) == (0, "breaker_open")
    calls, said = await rounds.round()
    assert (calls, said[0]) == (1, "blank")
    for _ in range(7):
        assert (await rounds.round())[0] == 0
    rounds.answer = GOOD
    assert (await rounds.round())[0] == 1


async def test_one_success_closes_the_breaker(tmp_path: Path) -> None:
    """After it three more failures are needed, not one."""
    rounds = Rounds(tmp_path / "s.db")
    await rounds.open_breaker()
    rounds.answer = GOOD
    assert (await rounds.round(turns=8))[0] == 1
    rounds.answer = ""
    assert [(await rounds.round())[0] for _ in range(4)] == [1, 1, 1, 0]


async def test_a_manual_compaction_asks_the_model_whatever_the_breaker_says(tmp_path: Path) -> None:
    """The user may always try: a failure of it does not count, a success closes the breaker."""
    rounds = Rounds(tmp_path / "s.db")
    await rounds.open_breaker()
    assert (await rounds.round(manual=True))[0] == 1
    assert (await rounds.round())[0] == 0
    rounds.answer = GOOD
    assert (await rounds.round(manual=True))[0] == 1
    assert (await rounds.round(turns=2))[0] == 1


async def test_another_configuration_is_tried_at_once(tmp_path: Path) -> None:
    """Whoever repairs the settings need not wait eight turns to see it."""
    rounds = Rounds(tmp_path / "s.db")
    await rounds.open_breaker()
    assert (await rounds.round())[0] == 0
    rounds.policy = msgspec.structs.replace(POLICY, clip_chars=10_000)
    assert (await rounds.round())[0] == 1
    assert (await rounds.round())[0] == 0


async def test_two_failures_and_a_success_leave_the_breaker_closed(tmp_path: Path) -> None:
    """Only failures in a row count."""
    rounds = Rounds(tmp_path / "s.db")
    await rounds.start()
    for answer in ("", "", GOOD, "", "", GOOD):
        rounds.answer = answer
        assert (await rounds.round(turns=2))[0] == 1


"""Each round's conversation has two turns more, so that a success saves what the gate asks for."""
