"""What a session over a long conversation holds in memory: its view, whatever lies before it."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from itertools import islice
from pathlib import Path

from benchmarks.bench_turn import build, settings_of
from benchmarks.conversations import exchanges
from benchmarks.measuring import Row, on_disk, ratio_row
from turnfold.stores.sqlite import SqliteStore
from turnfold.wiring import open_session

SHORT, LONG = 100, 50_000
"""Turns of two messages each; both show the same number of messages after the coverage."""
TURNS = 50


async def held(path: Path, name: str, turns: int) -> int:
    """Return the bytes that a session holds and its turns leave, beside the store's file."""
    async with SqliteStore(path) as store:
        await build(store, name, turns)
        supply = exchanges(10**9, start=turns)
        gc.collect()
        tracemalloc.start()
        try:
            async with open_session(store, settings_of(name)) as session:
                for pair in islice(supply, TURNS):
                    await session.append(*pair)
                    await session.prepare()
                gc.collect()
                return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()


def rows() -> list[Row]:
    """Compare a session over 100,000 messages with one over 200."""
    with on_disk() as folder:
        asyncio.run(held(folder / "warm.db", "warm", SHORT))  # what is loaded once a process is loaded here
        long = asyncio.run(held(folder / "long.db", "long", LONG))
        short = asyncio.run(held(folder / "short.db", "short", SHORT))
    name = f"memory of a session over {2 * LONG:,} messages"
    return [ratio_row(name, [long], f"over {2 * SHORT}", [short], bound=1.3, unit="MB")]


if __name__ == "__main__":
    from benchmarks.measuring import main

    main(rows)
