"""A session as its caller knows it: branches, pins, compaction by hand and by pressure, overflow, events, memory files."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from tests import small_sessions
from tests.small_sessions import KEY, exchange
from turnfold.config.settings import Settings
from turnfold.core.plan import SummaryRequest
from turnfold.errors import (
    ContextOverflowError,
    DuplicateMessageError,
    NotFoundError,
    StillTooLargeError,
    StoreError,
    SummaryError,
    VersionConflict,
)
from turnfold.messages.model import Message, Usage, text_message
from turnfold.ports import Store
from turnfold.runtime.events import CompactionFailed, CompactionFinished, CompactionStarted, Event, Listener
from turnfold.session import Session
from turnfold.session.prompt_files import FilePrompt
from turnfold.session.prompting import PromptSource
from turnfold.session.reminding import ReminderProvider
from turnfold.stores.memory import MemoryStore
from turnfold.stores.sqlite import SqliteStore
from turnfold.summarizers.scripted import ScriptedSummarizer
from turnfold.testing.faulty import FaultyStore, answer_late, fail_before
from turnfold.wiring import make_compactor, new_id

SUMMARY = "Ann's tickets are done. The port is 5433."
SETTINGS = msgspec.structs.replace(small_sessions.SETTINGS, context_window=1_500)
PARITY = msgspec.structs.replace(SETTINGS, floor_aware=False)
"""Cuts before answers only, so that a question and its answer may stand on two sides of a cut."""


def session_on(
    store: Store,
    summarizer: ScriptedSummarizer | None = None,
    *,
    settings: Settings = SETTINGS,
    system: str | PromptSource = "",
    listener: Listener | None = None,
    reminders: dict[str, ReminderProvider] | None = None,
) -> Session:
    """Return a session of 1,500 tokens that compacts above 1,200."""
    compactor = make_compactor(settings, using=summarizer or ScriptedSummarizer(lambda _: SUMMARY))
    budget = settings.budget(exact=compactor.counter.exact)
    return Session(
        store,
        KEY,
        compactor,
        budget=budget,
        new_id=new_id,
        system=system,
        model="m1",
        listener=listener,
        reminders=reminders,
    )


def waiting(gate: asyncio.Event, reached: asyncio.Event) -> ScriptedSummarizer:
    """Return a summarizer that says when it is asked, and answers when it may."""

    async def answer(_: SummaryRequest) -> str:
        reached.set()
        await gate.wait()
        return SUMMARY

    return ScriptedSummarizer(answer)


async def talked(session: Session, exchanges: int, *, start: int = 1, characters: int = 200) -> None:
    """Let some exchanges be said."""
    for number in range(start, start + exchanges):
        await session.append(*exchange(number, characters=characters))


def ids(messages: tuple[Message, ...]) -> list[str]:
    """The ids of messages that are no summaries."""
    return [message.id for message in messages if message.kind == "message"]


# -- branches --------------------------------------------------------------------------------------------------------


async def test_a_fork_leaves_the_branch_in_use() -> None:
    """Forking copies nothing and moves nobody; both branches go on by themselves, and the fork is found again."""
    async with session_on(MemoryStore()) as session:
        await talked(session, 3)
        fork = await session.fork("idea", at="a2")
        await session.append(*exchange(4))
        assert (session.branch, fork.seq) == ("main", 4)
        await session.switch("idea")
        assert await session.context_ids() == ("u1", "a1", "u2", "a2")
        with pytest.raises(VersionConflict):
            await session.fork("idea")


async def test_a_rewind_is_kept_over_a_restart() -> None:
    """The conversation goes on from the message, what came after stays in the old branch, and a new session knows it."""
    store = MemoryStore()
    async with session_on(store) as session:
        await talked(session, 3)
        branch = await session.rewind("a1")
    async with session_on(store) as session:
        assert session.branch == branch.name
        assert await session.context_ids() == ("u1", "a1")
        await session.switch("main")
        assert await session.context_ids() == ("u1", "a1", "u2", "a2", "u3", "a3")


async def test_regenerated_replies_stand_beside_each_other() -> None:
    """Three swipes of one reply are three branches with one request; none sees another's words."""
    store = MemoryStore()
    async with session_on(store) as session:
        await talked(session, 1)
        await session.say("Tell me a joke.")
        views = []
        for take in range(3):
            await session.reply(text_message(f"joke{take}", "assistant", f"joke number {take}"))
            views.append(await session.context_ids())
            await session.regenerate()
        assert [view[-1] for view in views] == ["joke0", "joke1", "joke2"]
        assert {view[:-1] for view in views} == {views[0][:-1]}
        assert (await session.prepare()).messages[-1].text == "Tell me a joke."


async def test_regenerating_after_a_compaction_shows_the_question() -> None:
    """A summary whose coverage ends with the question does not hide it from the reply that is made again.

    The cut fell between question and answer; on a branch without the answer, the question is what matters most.
    """
    store = MemoryStore()
    async with session_on(store, settings=PARITY) as session:
        await talked(session, 5)
        compacted = await session.compact()
        assert ids(compacted.messages)[0] == "a2"
        await session.rewind("u2")
        shown = await session.prepare()
        assert (shown.version, ids(shown.messages)) == (1, ["u2"])
        await session.reply(text_message("again", "assistant", "The answer, made again."))
        grown = await session.prepare()
        assert grown.messages[: len(shown.messages)] == shown.messages
    async with session_on(store, settings=PARITY) as session:
        assert (await session.prepare()).messages == grown.messages
        await session.switch("main")
        assert (await session.prepare()).messages == compacted.messages


async def test_an_edit_inside_the_coverage_refuses_the_summary_there_only() -> None:
    """The edited branch sees its messages without the stale summary; the old branch still has it."""
    async with session_on(MemoryStore()) as session:
        await talked(session, 5)
        compacted = await session.compact()
        await session.edit("u1", text_message("u1b", "user", "The port is 6000."))
        assert session.checkpoint is None
        assert await session.context_ids() == ("u1b",)
        await session.switch("main")
        assert (await session.prepare()).messages == compacted.messages


async def test_an_edit_that_cannot_be_stored_changes_nothing() -> None:
    """With an id that is taken, or a store that fails at the append, the branch in use stays in use, whole."""
    store = FaultyStore(MemoryStore())
    async with session_on(store) as session:
        await talked(session, 2)
        with pytest.raises(DuplicateMessageError):
            await session.edit("u2", text_message("a1", "user", "taken"))
        assert [branch.name for branch in await store.branches(KEY)] == ["main"]
        store.faults = [fail_before("append")]
        with pytest.raises(StoreError):
            await session.edit("u2", text_message("new", "user", "lost"))
        assert session.branch == "main"
        assert await session.context_ids() == ("u1", "a1", "u2", "a2")
    async with session_on(store) as session:
        assert session.branch == "main"


async def test_what_is_not_there_is_named() -> None:
    """Rewinding, pinning, editing and switching to something unknown say its name and change nothing."""
    async with session_on(MemoryStore()) as session:
        await talked(session, 1)
        for step in (
            session.rewind("nobody"),
            session.pin("u1", "nobody"),
            session.edit("nobody", exchange(9)[0]),
            session.switch("nobody"),
            session.fork("x", at="nobody"),
        ):
            with pytest.raises(NotFoundError, match="nobody"):
                await step
        assert (session.branch, await session.pins()) == ("main", ())
        assert [branch.name for branch in await session.store.branches(KEY)] == ["main"]


# -- pins ------------------------------------------------------------------------------------------------------------


async def test_a_pin_outlives_compactions_and_restarts() -> None:
    """A pinned message stays verbatim; one that is covered already comes back at the next compaction, not before."""
    store = MemoryStore()
    async with session_on(store) as session:
        await talked(session, 6)
        await session.pin("u1")
        await session.compact()
        assert "u1" in await session.context_ids()
        covered = next(iter({"a1", "u2", "a2"} - set(await session.context_ids())))
        before = (await session.prepare()).messages
        await session.pin(covered)
        assert (await session.prepare()).messages == before
    async with session_on(store) as session:
        await talked(session, 4, start=7)
        await session.compact()
        assert {"u1", covered} <= set(await session.context_ids())
        await session.unpin("u1", covered)
        assert {"u1", covered} <= set(await session.context_ids())
        await talked(session, 4, start=11)
        await session.compact()
        assert not {"u1", covered} & set(await session.context_ids())


# -- compaction ------------------------------------------------------------------------------------------------------


async def test_a_focus_reaches_the_summarizer() -> None:
    """What a compaction by hand should dwell on is told, and the breaker does not stop it."""
    summarizer = ScriptedSummarizer(lambda _: SUMMARY)
    async with session_on(MemoryStore(), summarizer) as session:
        await talked(session, 5)
        prepared = await session.compact("the port numbers")
        assert (prepared.outcome, prepared.trigger, prepared.persistence) == ("compacted", "manual", "saved")
        assert [request.focus for request in summarizer.requests] == ["the port numbers"]


async def test_pressure_after_a_reply_compacts_at_once() -> None:
    """A reply whose usage is over the trigger line compacts; one below it, an unfinished or a silent one does not."""
    async with session_on(MemoryStore()) as session:
        await talked(session, 5)
        await session.say("And now?")
        for number, (usage, stop) in enumerate(
            [(Usage(input=900, output=100), "stop"), (Usage(input=1_300, output=50), "length"), (None, "stop")]
        ):
            reply = Message(id=f"r{number}", role="assistant", usage=usage, stop_reason=stop)
            assert await session.reply(reply) is None
        pressed = Message(id="r9", role="assistant", usage=Usage(input=1_150, output=100), stop_reason="stop")
        prepared = await session.reply(pressed)
        assert prepared is not None
        assert (prepared.outcome, prepared.trigger) == ("compacted", "context_pressure")


async def test_reported_tokens_correct_the_budget() -> None:
    """A provider that counts twice what we do halves the budget for this model; another model's usage says nothing."""
    async with session_on(MemoryStore()) as session:
        await talked(session, 3)
        await session.say("And now?")
        prepared = await session.prepare()
        doubled = Usage(input=2 * prepared.tokens, output=1)
        await session.reply(Message(id="r1", role="assistant", usage=doubled, model="another", stop_reason="stop"))
        assert (await session.prepare()).budget.input_budget == 1_500
        await session.say("And then?")
        prepared = await session.prepare()
        doubled = Usage(input=2 * prepared.tokens, output=1)
        await session.reply(Message(id="r2", role="assistant", usage=doubled, model="m1", stop_reason="stop"))
        assert (await session.prepare()).budget.input_budget == 750


async def test_overflow_shrinks_three_times_the_last_without_a_model() -> None:
    """Each refusal gives a smaller request with the question in it, or an error; the third asks no model; a fourth in the
    same turn is an error that names the cure. A new turn begins anew.
    """
    summarizer = ScriptedSummarizer(lambda _: SUMMARY)
    async with session_on(MemoryStore(), summarizer) as session:
        await talked(session, 9)
        await session.say("And now?")
        sizes, asked = [(await session.prepare()).tokens], 0
        for _ in range(3):
            asked = len(summarizer.requests)
            try:
                prepared = await session.overflowed()
            except ContextOverflowError:  # nothing more can be left out
                continue
            sizes.append(prepared.tokens)
            assert prepared.messages[-1].text == "And now?"
        assert len(sizes) > 1
        assert sizes == sorted(set(sizes), reverse=True)
        assert len(summarizer.requests) == asked
        with pytest.raises(StillTooLargeError, match="by our count"):
            await session.overflowed()
        await session.say("A shorter question, then?")
        assert (await session.prepare()).messages[-1].text == "A shorter question, then?"
        with pytest.raises(ContextOverflowError) as refused:  # it is looked at anew, not refused by its number
            await session.overflowed()
        assert not isinstance(refused.value, StillTooLargeError)


async def test_what_is_said_during_a_compaction_is_in_the_next_view() -> None:
    """Appending does not wait for the summarizer, and nothing that arrives meanwhile is lost."""
    gate, reached = asyncio.Event(), asyncio.Event()
    async with session_on(MemoryStore(), waiting(gate, reached)) as session:
        await talked(session, 5)
        task = asyncio.create_task(session.compact())
        await reached.wait()
        await session.append(*exchange(6))
        assert "u6" in await session.context_ids()
        gate.set()
        assert (await task).persistence == "saved"
        assert (await session.context_ids())[-2:] == ("u6", "a6")


async def test_one_compaction_is_in_flight_per_conversation() -> None:
    """A second request waits for the first one's compaction and then uses it; the summarizer is asked once."""
    gate, reached = asyncio.Event(), asyncio.Event()
    summarizer = waiting(gate, reached)
    async with session_on(MemoryStore(), summarizer) as session:
        await talked(session, 7)
        await session.append(*exchange(8, characters=2_500))
        first = asyncio.create_task(session.prepare())
        await reached.wait()
        second = asyncio.create_task(session.prepare())
        gate.set()
        assert ((await first).outcome, (await second).outcome) == ("compacted", "reused")
        assert len(summarizer.requests) == 1


async def test_a_background_compaction_never_overwrites_a_newer_one() -> None:
    """Of two processes that compact at once one is first; the other serves its turn, says `conflict`, and goes on from there."""
    gate, reached = asyncio.Event(), asyncio.Event()
    store = MemoryStore()
    async with session_on(store, waiting(gate, reached)) as slow, session_on(store) as quick:
        await talked(slow, 5)
        task = asyncio.create_task(slow.compact())
        await reached.wait()
        assert (await quick.compact()).persistence == "saved"
        await slow.context_ids()  # looks at the newer checkpoint while its own is in the making
        gate.set()
        late = await task
        assert (late.outcome, late.persistence, late.version) == ("compacted", "conflict", 1)
        assert slow.checkpoint == quick.checkpoint


async def test_a_compaction_stays_on_the_branch_where_it_began() -> None:
    """Switching the branch while a summarizer works puts neither summary nor checkpoint into the other branch."""
    gate, reached = asyncio.Event(), asyncio.Event()
    store = MemoryStore()
    async with session_on(store, waiting(gate, reached)) as session:
        await talked(session, 6)
        task = asyncio.create_task(session.compact())
        await reached.wait()
        await session.rewind("a1")
        gate.set()
        assert (await task).persistence == "saved"
        rows = await store.read(KEY, branch=session.branch)
        assert [entry.message.id for entry in rows] == ["u1", "a1"]
        assert await session.context_ids() == ("u1", "a1")
        await session.switch("main")
        assert session.checkpoint is not None
        assert (await store.verify()).problems == ()


async def test_two_looks_at_once_count_no_row_twice() -> None:
    """Reading and appending at the same time, with a store that answers late, leaves each message in view once."""
    store = FaultyStore(MemoryStore(), answer_late("changes", 0.01))
    async with session_on(store) as session:
        await asyncio.gather(session.context_ids(), talked(session, 2), session.view(), session.context_ids())
        await asyncio.gather(session.view(), session.append(*exchange(3)), session.view())
        assert await session.context_ids() == ("u1", "a1", "u2", "a2", "u3", "a3")


async def test_a_failing_summarizer_or_store_fails_no_turn() -> None:
    """The turn is served, the reason is given, and the next try can succeed."""
    answers: list[str | BaseException] = [SummaryError("no", code="refused"), SUMMARY, SUMMARY]
    store = FaultyStore(MemoryStore())
    events: list[Event] = []
    async with session_on(store, ScriptedSummarizer(answers), listener=events.append) as session:
        await talked(session, 5)
        failed = await session.compact()
        assert (failed.outcome, failed.persistence) == ("unchanged", "not_needed")
        assert "refused" in [reason.code for reason in failed.reasons]
        store.faults = [fail_before("save")]
        unsaved = await session.compact()
        assert (unsaved.outcome, unsaved.persistence, unsaved.version) == ("compacted", "failed", None)
        store.faults = []
        assert (await session.compact()).persistence == "saved"
    told = [type(event) for event in events if isinstance(event, CompactionFailed | CompactionFinished)]
    assert told == [CompactionFailed, CompactionFinished, CompactionFinished]
    assert sum(isinstance(event, CompactionStarted) for event in events) == 3


async def test_each_compaction_is_told_once(tmp_path: Path) -> None:
    """Also after a restart, and when two processes ask: exactly one of them is told."""
    path = tmp_path / "store.db"
    async with SqliteStore(path) as store, session_on(store) as session:
        await talked(session, 5)
        assert await session.take_compaction_event() is None
        await session.compact()
    async with (
        SqliteStore(path) as store,
        SqliteStore(path) as other,
        session_on(store) as one,
        session_on(other) as two,
    ):
        told = await asyncio.gather(one.take_compaction_event(), two.take_compaction_event())
        assert [event.version for event in told if event is not None] == [1]
        assert await one.take_compaction_event() is None
    async with SqliteStore(path) as store, session_on(store) as session:
        assert await session.take_compaction_event() is None


# -- prompt and memory -----------------------------------------------------------------------------------------------


async def test_reminders_are_put_back_once_after_each_compaction() -> None:
    """They stand at the end, say what is true then, and the older ones leave the view."""
    todo = ["buy milk"]

    async def read() -> str:
        return todo[0]

    store = MemoryStore()
    async with session_on(store, reminders={"todo": read}) as session:
        await talked(session, 5)
        assert "milk" not in json.dumps([message.text for message in (await session.prepare()).messages])
        first = await session.compact()
        assert first.messages[-1].text.count("buy milk") == 1
        assert (await session.prepare()).messages == first.messages
        todo[0] = "buy bread"
        await talked(session, 3, start=6)
        second = await session.compact()
        texts = [message.text for message in second.messages]
        assert sum("buy milk" in text for text in texts) == 0
        assert sum("buy bread" in text for text in texts) == 1
    async with session_on(store, reminders={"todo": read}) as session:
        assert (await session.prepare()).messages == second.messages


async def test_memory_changes_are_told_and_folded(tmp_path: Path) -> None:
    """A change is told once, before what the user says next; a compaction recompiles the prompt and drops the telling;
    no summarizer ever reads it.
    """
    (tmp_path / "facts.md").write_text("The port is 5433.")
    source = FilePrompt("Be brief.", memory=tmp_path)
    summarizer = ScriptedSummarizer(lambda _: SUMMARY)
    store = MemoryStore()
    async with session_on(store, summarizer, system=source) as session:
        await talked(session, 3)
        before = await session.prepare()
        (tmp_path / "facts.md").write_text("The port is 6000.")
        await session.say("Which port?")
        told = await session.prepare()
        assert told.messages[: len(before.messages)] == before.messages
        assert [message.kind for message in told.messages[-2:]] == ["memory_update", "message"]
        assert "6000" in told.messages[-2].text
        assert "5433" in told.messages[0].text
        await session.reply(text_message("r", "assistant", "6000."))
        assert sum(m.kind == "memory_update" for m in (await session.prepare()).messages) == 1
    async with session_on(store, summarizer, system=source) as session:
        await talked(session, 3, start=4)
        compacted = await session.compact()
        assert "6000" in compacted.messages[0].text
        assert [message.kind for message in compacted.messages if message.kind == "memory_update"] == []
        assert all(row.kind == "message" for request in summarizer.requests for row in request.messages)
        assert (await session.prepare()).messages == compacted.messages
