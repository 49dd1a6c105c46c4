"""A process that others kill or race: appends to one conversation and compacts it, and says what it was told.

    python -m tests.faults.writer append FILE NAME SECONDS      one line a fact: `ready`, `ack ID`, `saved VERSION`
    python -m tests.faults.writer create FOLDER                 opens new stores one after another: `ready`, `made PATH`

A line is written only after the store has answered, so whatever was printed must be found in the file.
"""

import asyncio
import itertools
import sys
import time
from pathlib import Path

from tests.small_sessions import exchange, small_session
from turnfold.errors import StoreUnavailableError
from turnfold.messages.model import Message
from turnfold.stores.sqlite import SqliteStore


def say(line: str) -> None:
    """Tell the parent."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def renamed(message: Message, prefix: str) -> Message:
    """Return the message under an id of this process."""
    return Message(id=f"{prefix}-{message.id}", role=message.role, parts=message.parts)


async def append(path: Path, name: str, seconds: float) -> None:
    """Append turns and prepare each, which compacts about every sixth time; every tenth turn compacts by hand."""
    async with SqliteStore(path, busy_timeout_ms=60_000) as store, small_session(store) as session:
        say("ready")
        end = time.monotonic() + seconds
        for number in itertools.count():
            pair = [renamed(message, name) for message in exchange(number)]
            await session.append(*pair)
            for message in pair:
                say(f"ack {message.id}")
            prepared = await (session.compact() if number % 10 == 9 else session.prepare())
            if prepared.persistence == "saved":
                say(f"saved {prepared.version}")
            if time.monotonic() > end:
                return


async def create(folder: Path) -> None:
    """Make new stores until killed."""
    say("ready")
    for number in itertools.count():
        path = folder / f"{number}.db"
        async with SqliteStore(path):
            say(f"made {path}")


def main(arguments: list[str]) -> int:
    """Run one of the two. Exits with 3 when the store was unavailable."""
    try:
        if arguments[0] == "append":
            asyncio.run(append(Path(arguments[1]), arguments[2], float(arguments[3])))
        else:
            asyncio.run(create(Path(arguments[1])))
    except StoreUnavailableError as error:
        say(f"unavailable {error.reason} {error.detail}")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
