"""How fast a large file comes into an SQLite store, and in how much memory: `turnfold import` of generated JSON Lines.

    bench_import_file.py [MEGABYTES] [--format FORMAT]

Messages are of the sizes that an agent's session has: short requests and replies, now and then a tool result of some kilobytes.
The probe line writes and fsyncs the same bytes and nothing else, to tell a slow disk from a slow import.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from turnfold.messages.model import Message, Text, ToolCall, ToolResult
from turnfold.transcripts import encode
from turnfold.transcripts.document import Transcript

WORDS = (
    "deploy",
    "ledger",
    "retry",
    "queue",
    "schema",
    "备份",
    "迁移",
    "timeout",
    "invoice",
    "branch",
    "cache",
    "日志",
)
BLOCK_TURNS = 200
"""Turns encoded at a time."""


def turn(number: int, rng: random.Random) -> list[Message]:
    """One turn of an agent: a request, a call, its result, an answer."""

    def prose(words: int) -> str:
        return " ".join(rng.choices(WORDS, k=words)) + f" #{number}"

    call = ToolCall(id=f"c{number}", name="bash", arguments=f'{{"command":"grep -n {rng.choice(WORDS)} log.{number}"}}')
    result = ToolResult(call_id=call.id, content=(Text(text=prose(rng.choice((20, 60, 400, 1500)))),))
    return [
        Message(id=f"m{number}-1", role="user", parts=(Text(text=prose(25)),), created_at=1_790_000_000_000 + number),
        Message(id=f"m{number}-2", role="assistant", parts=(Text(text=prose(15)), call)),
        Message(id=f"m{number}-3", role="tool", parts=(result,)),
        Message(id=f"m{number}-4", role="assistant", parts=(Text(text=prose(80)),)),
    ]


def generate(size: int, format_name: str = "turnfold", seed: int = 1) -> Iterator[bytes]:
    """Yield the rows of one conversation until there are `size` bytes; the same for equal arguments."""
    rng, written, number = random.Random(seed), 0, 0
    while written < size:
        messages = tuple(m for n in range(number, number + BLOCK_TURNS) for m in turn(n, rng))
        transcript = Transcript(format=format_name, messages=messages, conversation_id="generated")
        rows = list(encode(transcript, format_name))
        for row in rows if number == 0 or format_name != "turnfold" else rows[1:]:
            written += len(row)
            yield row
        number += BLOCK_TURNS


def write_probe(path: Path, size: int) -> float:
    """Seconds to write and fsync `size` bytes in pieces of 8 MB."""
    start, piece = time.perf_counter(), os.urandom(8_000_000)
    with path.open("wb", buffering=0) as file:
        for _ in range(max(1, size // len(piece))):
            file.write(piece)
            os.fsync(file.fileno())
    seconds = time.perf_counter() - start
    path.unlink()
    return seconds


def import_once(file: Path, store: Path) -> tuple[float, int]:
    """Seconds and the largest resident memory, in bytes, of one `turnfold import`."""
    start = time.perf_counter()
    program = [
        sys.executable,
        "-c",
        "from turnfold.cli.main import main; main()",
        "import",
        str(file),
        "--store",
        str(store),
    ]
    process = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the import failed with exit code {process.returncode}")
    return time.perf_counter() - start, usage.ru_maxrss * 1024


def main() -> None:
    """Generate, import twice, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("megabytes", type=int, nargs="?", default=100)
    parser.add_argument("--format", default="turnfold", choices=("turnfold", "openai_chat", "letta"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file, store = Path(folder) / "big.jsonl", Path(folder) / "store.db"
        with file.open("wb") as out:
            out.writelines(generate(arguments.megabytes * 1_000_000, arguments.format))
        size = file.stat().st_size
        probe = write_probe(Path(folder) / "probe", size)
        print(f"file: {size / 1e6:.0f} MB of {arguments.format}; written and fsynced bare in {probe:.1f} s")
        for what in ("first import", "again, all known"):
            seconds, memory = import_once(file, store)
            print(f"{what}: {seconds:.1f} s, {size / 1e6 / seconds:.1f} MB/s, {memory / 1e6:.0f} MB of memory")
        print(f"store: {sum(path.stat().st_size for path in Path(folder).glob('store.db*')) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
