"""How large a database is beside the raw JSON of its messages, each an object on a line of its own."""

from __future__ import annotations

import asyncio
from itertools import islice
from pathlib import Path

import msgspec

from benchmarks.conversations import exchanges, tool_steps
from benchmarks.measuring import Row, on_disk, ratio_row
from turnfold.messages.log import ConversationKey
from turnfold.messages.model import Message
from turnfold.stores.sqlite import SqliteStore
from turnfold.tokens import make_counter

BATCH = 1_000


async def written(path: Path, messages: list[Message]) -> int:
    """Return the bytes of a store that holds the messages, with their counts, after it was closed."""
    counter = make_counter("bpe")
    async with SqliteStore(path) as store:
        for start in range(0, len(messages), BATCH):
            batch = messages[start : start + BATCH]
            counts = {counter.name: [counter.count_message(message) for message in batch]}
            await store.append(ConversationKey(user="ann", conversation_id="long"), batch, counts=counts)
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))


def rows() -> list[Row]:
    """Short talk is the hard case: a row's keys, chain and counts are as long as its text."""
    kinds = {
        "20,000 messages of 40 words": [message for pair in exchanges(10_000) for message in pair],
        "20,000 messages of 8 words": [message for pair in exchanges(10_000, words=8) for message in pair],
        "20,000 messages of tool use": list(islice(tool_steps(10_000), 20_000)),
    }
    found = []
    with on_disk() as folder:
        for number, (name, messages) in enumerate(kinds.items()):
            raw = sum(len(msgspec.json.encode(message)) + 1 for message in messages)
            size = asyncio.run(written(folder / f"{number}.db", messages))
            found.append(ratio_row(f"a database of {name}", [size], "raw JSON", [raw], bound=2.5, unit="MB"))
    return found


if __name__ == "__main__":
    from benchmarks.measuring import main

    main(rows)
