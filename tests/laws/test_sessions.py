"""Whatever is said, pinned and compacted: every request of a session is whole, fits, and hides nothing that must be seen."""

import asyncio
import json
from collections.abc import Sequence
from itertools import count

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.histories import histories
from turnfold.core.budget import Budget
from turnfold.core.groups import open_request
from turnfold.core.growing import waiting_calls
from turnfold.core.policy import Policy
from turnfold.errors import ContextOverflowError
from turnfold.messages.canonical import js_json
from turnfold.messages.log import ConversationKey
from turnfold.messages.model import Message, Text, ToolResult
from turnfold.runtime.compactor import Compactor
from turnfold.runtime.decision import Prepared
from turnfold.session import Session
from turnfold.stores.memory import MemoryStore
from turnfold.summarizers.extractive import ExtractiveSummarizer
from turnfold.summarizers.scripted import ScriptedSummarizer
from turnfold.tokens.chars4 import Chars4Counter
from turnfold.transcripts import openai_chat
from turnfold.transcripts.validity import check_openai_chat
from turnfold.wiring import SystemClock

KEY = ConversationKey(conversation_id="laws")
SYSTEM = "You are the assistant of a small workshop."
POLICIES = st.sampled_from(
    [
        Policy(),
        Policy(mask_tool_results=False),
        Policy(floor_aware=False, mask_tool_results=False),
        Policy(planner="all"),
        Policy(keep_tool_results=1, stats_in_text=True),
    ]
)
ANSWERS = st.sampled_from(["They spoke about words, and it went well.", "", "They spoke. " * 200])


def session_of(store: MemoryStore, window: int, policy: Policy, answer: str) -> Session:
    """Return a session whose model always summarizes with `answer`."""
    counter, numbers = Chars4Counter(), count(1)
    compactor = Compactor(
        counter=counter,
        summarizer=ScriptedSummarizer(lambda _: answer),
        fallback=ExtractiveSummarizer(counter.count_text),
        policy=policy,
        clock=SystemClock(),
        new_frame=lambda: "frame",
    )
    new_id = f"n{id(store)}-".__add__
    return Session(
        store,
        KEY,
        compactor,
        budget=Budget(context_window=window),
        new_id=lambda: new_id(str(next(numbers))),
        system=SYSTEM,
    )


def violations(messages: Sequence[Message]) -> list[str]:
    """Return what a provider would refuse, once the calls that wait at the end have their results."""
    results = [
        Message(id=f"late{call_id}", role="tool", parts=(ToolResult(call_id=call_id, content=(Text(text="done"),)),))
        for call_id in waiting_calls(messages)
    ]
    body = openai_chat.encode_request((*messages, *results), model="m")
    return [str(found) for found in check_openai_chat(json.loads(js_json(body)), system_first=False)]


def check(prepared: Prepared, said: Sequence[Message], pinned: set[str]) -> None:
    """Judge one request by all that was said before it."""
    shown = {message.id: message for message in prepared.messages}
    assert prepared.tokens <= prepared.budget.input_budget
    assert prepared.messages[0].text == SYSTEM
    assert violations(prepared.messages) == []
    request = open_request(said)
    if request is not None and prepared.outcome != "trimmed":
        assert shown.get(said[request].id) == said[request]
    texts = "\n".join(message.text for message in prepared.messages)
    for message in said:
        if message.id in pinned and message.role != "tool":
            assert message.text in texts
    trailing = []
    for message in reversed(said):
        if message.role != "user":
            break
        trailing.append(message)
    assert all(shown.get(message.id) == message for message in trailing)


@given(
    st.lists(histories(min_size=1, max_size=8, prefix="m"), min_size=2, max_size=6),
    st.integers(700, 2_000),
    POLICIES,
    ANSWERS,
    st.data(),
)
def test_every_request_of_a_session_keeps_the_promises(
    chunks: list[tuple[Message, ...]], window: int, policy: Policy, answer: str, data: st.DataObject
) -> None:
    """It fits or the error says why; no pair is broken; system prompt, pins, an open request and the incoming turn stand
    verbatim; the log holds all that was said; and a session opened anew sees what the last one saw.
    """

    async def play() -> None:
        store, said, pinned = MemoryStore(), list[Message](), set[str]()
        for number, chunk in enumerate(chunks):
            rows = [_renamed(row, f"{number}-") for row in chunk]
            async with session_of(store, window, policy, answer) as session:
                await session.append(*rows)
                said += rows
                if data.draw(st.booleans()):
                    pin = data.draw(st.sampled_from(said)).id
                    await session.pin(pin)
                    pinned.add(pin)
                try:
                    prepared = await session.prepare()
                except ContextOverflowError:
                    continue
                check(prepared, said, await _effective(session, pinned, prepared))
                if prepared.persistence in ("saved", "not_needed") and prepared.outcome != "trimmed":
                    async with session_of(store, window, policy, answer) as again:
                        assert (await again.view()).messages == prepared.messages
        entries = await store.read(KEY)
        assert [entry.message for entry in entries if entry.message.kind == "message"] == said
        assert (await store.verify()).problems == ()

    asyncio.run(play())


async def _effective(session: Session, pinned: set[str], prepared: Prepared) -> set[str]:
    """Return the pins in force: one of a covered message takes effect at the next compaction."""
    return pinned if prepared.outcome == "compacted" else set(session.checkpoint.pins if session.checkpoint else ())


def _renamed(row: Message, prefix: str) -> Message:
    return msgspec.structs.replace(row, id=prefix + row.id)
