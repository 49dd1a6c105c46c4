"""Checking a history before a call, and appending a turn, beside what others do for the same.

Each row says "not installed" where a peer of the group `peers` is not there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.bench_turn import settings_of
from benchmarks.conversations import exchanges
from benchmarks.measuring import Row, on_disk, ratio_row, skipped, timed, timed_async
from turnfold.messages.log import ConversationKey
from turnfold.ports import Store
from turnfold.stores.memory import MemoryStore
from turnfold.stores.sqlite import SqliteStore
from turnfold.wiring import open_session

MESSAGES, ROUNDS, CHECKS = 10_000, 11, 10
"""Checks in a round run one after another, ours and theirs apart: each finds its own messages in the processor's cache."""
TURNS = 20


async def check_before_a_call(folder: Path) -> list[Row]:
    """Ours in memory, as LangChain's state is, with a bound; and ours over a file, whose look for others' rows is extra."""
    name = f"checking {MESSAGES:,} messages before a call"
    if find_spec("langchain") is None:
        return [skipped(f"{name}, LangChain", "not installed")]
    found = [await check(f"{name}, in memory", MemoryStore(), bound=0.01)]
    async with SqliteStore(folder / "check.db") as store:
        found.append(await check(f"{name}, in a file", store, bound=None))
    return found


async def check(name: str, store: Store, *, bound: float | None) -> Row:
    """After each new message, ours: `prepare`; LangChain's: what its middleware does before a model call."""
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_core.language_models.fake_chat_models import FakeListChatModel
    from langchain_core.messages import AIMessage, HumanMessage

    middleware = SummarizationMiddleware(model=FakeListChatModel(responses=["x"]), trigger=("tokens", 10**9))
    state: Any = {"messages": []}
    runtime: Any = None
    pairs = list(exchanges(MESSAGES // 2))
    for question, answer in pairs:
        state["messages"] += [HumanMessage(question.text, id=question.id), AIMessage(answer.text, id=answer.id)]
    await store.append(ConversationKey(conversation_id="check"), [message for pair in pairs for message in pair])
    async with open_session(store, settings_of("check")) as session:
        await session.prepare()
        supply = exchanges(10**9, start=MESSAGES)
        ours, theirs = [], []
        for _ in range(ROUNDS):
            mine, its = 0.0, 0.0
            for question, _answer in islice(supply, CHECKS):
                await session.append(question)
                mine += await timed_async(session.prepare)
            for question, _answer in islice(supply, CHECKS):
                state["messages"].append(HumanMessage(question.text, id=question.id))
                its += timed(lambda: middleware.before_model(state, runtime))
            ours.append(mine / CHECKS)
            theirs.append(its / CHECKS)
    return ratio_row(name, ours, "LangChain's SummarizationMiddleware", theirs, bound=bound)


async def append_beside_langgraph(folder: Path) -> list[Row]:
    """A turn on a history of 200 messages: LangGraph's checkpointer stores the state, all messages, anew."""
    name = "a turn of a conversation with 200 messages"
    try:
        from langgraph.checkpoint.base import empty_checkpoint
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError:
        return [skipped(f"{name}, langgraph-checkpoint-sqlite", "not installed")]
    history = [{"role": message.role, "content": message.text} for pair in exchanges(100) for message in pair]
    with SqliteSaver.from_conn_string(str(folder / "langgraph.db")) as saver:
        saver.setup()
        saver.conn.execute("PRAGMA synchronous = FULL")
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}

        def turn(number: int) -> None:
            nonlocal config
            history.extend({"role": "user", "content": f"question {number} {side}"} for side in "ab")
            checkpoint = empty_checkpoint()
            checkpoint["channel_values"] = {"messages": list(history)}
            config = saver.put(config, checkpoint, {"source": "loop", "step": number}, {})

        return [await beside(folder, name, "langgraph-checkpoint-sqlite", turn)]


async def append_beside_agents(folder: Path) -> list[Row]:
    """The same with the session of OpenAI's agents: adds two items, and reads all of them for the next call."""
    name = "a turn of a conversation with 200 messages"
    try:
        from agents import SQLiteSession
    except ImportError:
        return [skipped(f"{name}, openai-agents", "not installed")]
    session = SQLiteSession("t", folder / "agents.db")
    items: Any = [{"role": message.role, "content": message.text} for pair in exchanges(100) for message in pair]
    await session.add_items(items)
    loop = asyncio.Runner()

    def turn(number: int) -> None:
        async def both() -> None:
            added: Any = [{"role": "user", "content": f"question {number} {side}"} for side in "ab"]
            await session.add_items(added)
            await session.get_items()

        loop.run(both())

    try:
        return [await beside(folder, name, "openai-agents' SQLiteSession", turn)]
    finally:
        await asyncio.to_thread(loop.close)
        session.close()


async def beside(folder: Path, name: str, peer: str, turn: Callable[[int], None]) -> Row:
    """Run turns of ours and of a peer's, in turns. A figure: there is no bound on it."""
    async with SqliteStore(folder / f"{peer[:6]}-ours.db") as store:
        await store.append(ConversationKey(conversation_id="t"), [m for pair in exchanges(100) for m in pair])
        async with open_session(store, settings_of("t")) as session:
            await session.prepare()
            supply = exchanges(10**9, start=1000)

            async def ours() -> None:
                for _ in range(TURNS):
                    await session.append(*next(supply))
                    await session.prepare()

            mine, its = [], []
            for number in range(-1, ROUNDS):
                one = await timed_async(ours)
                other = await asyncio.to_thread(timed, partial(several, turn, number))
                if number >= 0:
                    mine.append(one / TURNS)
                    its.append(other / TURNS)
    return ratio_row(name, mine, peer, its, bound=None, unit="us")


def several(turn: Callable[[int], None], number: int) -> None:
    """Run a round of a peer's turns."""
    for step in range(number * TURNS, (number + 1) * TURNS):
        turn(step)


def rows() -> list[Row]:
    """Measure beside every peer that is there."""

    async def all_of_them(folder: Path) -> list[Row]:
        return [
            *await check_before_a_call(folder),
            *await append_beside_langgraph(folder),
            *await append_beside_agents(folder),
        ]

    with on_disk() as folder:
        return asyncio.run(all_of_them(folder))


if __name__ == "__main__":
    from benchmarks.measuring import main

    main(rows)
