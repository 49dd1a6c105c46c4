"""A process whose files may not grow beyond a limit: fills a store, is refused, and goes on when there is room again.

    python -m tests.faults.full_disk FOLDER

The limit stands for a disk that is full; it belongs to a process of its own, since it holds for every file. Prints `done`.
"""

import asyncio
import resource
import signal
import sys
from pathlib import Path

from tests.faults.filling import fill_and_go_on

LIMIT = 300_000
"""Bytes that a file may have; both the database and its write-ahead log reach it."""


def limit(size: int) -> None:
    """Let files grow to `size` bytes."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))


def main(folder: Path) -> None:
    """Fill, go on."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    asyncio.run(
        fill_and_go_on(
            folder / "store.db", full=lambda: limit(LIMIT), free=lambda: limit(resource.RLIM_INFINITY), reason="full"
        )
    )
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
