"""A turn without compaction: two messages appended, durably, and the next request prepared.

It must cost at turn 100,000 what it costs at turn 100, and not much more than a bare loop that inserts the same rows into
the same table with the same sync setting and as many commits.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import msgspec

from benchmarks.conversations import exchanges
from benchmarks.measuring import Row, on_disk, ratio_row, timed, timed_async
from turnfold.config.settings import Settings
from turnfold.core.checkpoint import Audit, Checkpoint, CheckpointKey, Coverage
from turnfold.messages.canonical import digest
from turnfold.messages.log import ConversationKey
from turnfold.messages.model import Message
from turnfold.session import Session
from turnfold.session.session import session_fingerprint
from turnfold.stores.sqlite import SqliteStore
from turnfold.wiring import make_compactor, open_session

Pair: TypeAlias = tuple[Message, Message]

ROUNDS, TURNS = 15, 40
"""Rounds that are compared, and turns in each."""
SHORT, LONG = 100, 100_000
KEPT_TURNS = 30
"""Turns after the coverage: both conversations show views of equal length."""
WINDOW = 1_000_000
"""So large that nothing is compacted while turns are measured."""
BATCH = 5_000


def settings_of(name: str) -> Settings:
    """Return the settings of a session over the conversation `name`."""
    return Settings(conversation=name, context_window=WINDOW)


async def build(store: SqliteStore, name: str, turns: int, *, kept_turns: int = KEPT_TURNS) -> None:
    """Write a conversation of `turns` turns, all but the last few of them covered by a checkpoint."""
    settings = settings_of(name)
    compactor, key = make_compactor(settings), ConversationKey(conversation_id=name)
    supply = exchanges(turns)
    while pairs := list(islice(supply, BATCH)):
        messages = [message for pair in pairs for message in pair]
        counts = [compactor.counter.count_message(message) for message in messages]
        await store.append(key, messages, counts={compactor.counter.name: counts})
    covered = 2 * (turns - kept_turns)
    line = CheckpointKey(conversation_id=name, scenario="session")
    checkpoint = Checkpoint(
        version=1,
        created_at=1,
        fingerprint=session_fingerprint(compactor.policy),
        summary="They fixed the build and talked about it.",
        coverage=await coverage_of(store, key, covered),
        audit=Audit(trigger="manual", mode="all"),
    )
    await store.save(line, checkpoint, expected_version=0)


async def coverage_of(store: SqliteStore, key: ConversationKey, count: int) -> Coverage:
    """Return the coverage of the first `count` messages, read from the log instead of hashed anew."""
    first, last = await store.at_seq(key, 1), await store.at_seq(key, count)
    tail = await store.read(key, after=max(count - 64, 0), limit=min(count, 64))
    assert first is not None
    assert last is not None
    return Coverage(
        first_id=first.message.id,
        last_id=last.message.id,
        count=count,
        chain=last.chain,
        tail=tuple((entry.message.id, digest(entry.message)) for entry in tail),
    )


class Turns:
    """Turns of a session, one after another."""

    def __init__(self, session: Session, start: int) -> None:
        self.session = session
        self.supply = exchanges(10**9, start=start)

    async def together(self, pairs: Sequence[Pair]) -> None:
        """Append a question and its answer at once, and prepare the next request."""
        for pair in pairs:
            await self.session.append(*pair)
            await self.session.prepare()

    async def one_by_one(self, pairs: Sequence[Pair]) -> None:
        """Append a question, prepare, append its answer: what a chat does. Two commits."""
        for question, answer in pairs:
            await self.session.append(question)
            await self.session.prepare()
            await self.session.append(answer)


class BareLoop:
    """Inserts rows like a store's, in plain `sqlite3`, with nothing read, checked, counted, digested or chained."""

    def __init__(self, file: Path, model: Path) -> None:
        self.connection = sqlite3.connect(file, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        with sqlite3.connect(model) as source:
            schema = source.execute(
                "SELECT sql FROM sqlite_schema WHERE tbl_name = 'messages' AND sql IS NOT NULL ORDER BY type DESC"
            )
            for (sql,) in schema.fetchall():
                if sql.startswith(("CREATE TABLE", "CREATE INDEX")):
                    self.connection.execute(sql)
        source.close()
        self.position = 0
        self.supply = exchanges(10**9, start=5_000_000)

    def insert(self, messages: Sequence[Message]) -> None:
        """Insert messages in one transaction."""
        self.connection.execute("BEGIN IMMEDIATE")
        for message in messages:
            self.position += 1
            row = (1, 1, self.position, self.position, 1, bytes(16), message.id, msgspec.json.encode(message))
            self.connection.execute(
                "INSERT INTO messages (conversation, branch, position, seq, chained, chain, message_id, body, counts) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, '{\"bpe:o200k_base\":41}')",
                row,
            )
        self.connection.execute("COMMIT")

    def together(self, pairs: Sequence[Pair]) -> None:
        """Two rows a commit."""
        for pair in pairs:
            self.insert(pair)

    def one_by_one(self, pairs: Sequence[Pair]) -> None:
        """One row a commit."""
        for question, answer in pairs:
            self.insert((question,))
            self.insert((answer,))


@contextmanager
def bare_loop(folder: Path) -> Iterator[BareLoop]:
    """A bare loop on a new file, closed at the end."""
    loop = BareLoop(folder / "bare.db", folder / "store.db")
    try:
        yield loop
    finally:
        loop.connection.close()


async def measure(folder: Path) -> list[Row]:
    """Return the rows of this benchmark."""
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(SqliteStore(folder / "store.db"))
        turns = {}
        for name, length in (("short", SHORT), ("long", LONG)):
            await build(store, name, length)
            session = await stack.enter_async_context(open_session(store, settings_of(name)))
            turns[name] = Turns(session, length)
        with bare_loop(folder) as bare:
            return await compare(turns["short"], turns["long"], bare)


def next_pairs(source: Turns | BareLoop) -> list[Pair]:
    """Make the messages of a round, outside the time that is taken."""
    return list(islice(source.supply, TURNS))


async def compare(short: Turns, long: Turns, bare: BareLoop) -> list[Row]:
    """Run all in turns."""
    times: dict[str, list[float]] = {"short": [], "long": [], "bare": [], "long, chat": [], "bare, chat": []}
    for number in range(-2, ROUNDS):
        taken = {
            "short": await timed_async(partial(short.together, next_pairs(short))),
            "long": await timed_async(partial(long.together, next_pairs(long))),
            "bare": timed(partial(bare.together, next_pairs(bare))),
            "long, chat": await timed_async(partial(long.one_by_one, next_pairs(long))),
            "bare, chat": timed(partial(bare.one_by_one, next_pairs(bare))),
        }
        if number >= 0:
            for name, seconds in taken.items():
                times[name].append(seconds / TURNS)
    return [
        ratio_row(f"a turn at turn {LONG:,}", times["long"], f"at turn {SHORT}", times["short"], bound=1.3, unit="us"),
        ratio_row(
            "a turn, two messages in one commit",
            times["long"],
            "bare inserts, same commits",
            times["bare"],
            bound=3,
            unit="us",
        ),
        ratio_row(
            "a turn, each message its own commit",
            times["long, chat"],
            "bare inserts, same commits",
            times["bare, chat"],
            bound=3,
            unit="us",
        ),
    ]


def rows() -> list[Row]:
    """Measure on the disk that holds the checkout."""
    with on_disk() as folder:
        return asyncio.run(measure(folder))


if __name__ == "__main__":
    from benchmarks.measuring import main

    main(rows)
