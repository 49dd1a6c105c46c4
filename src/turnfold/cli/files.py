"""Reading and writing the files that users name, with one clear message for each way that fails."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from turnfold.cli.terminal import error_console, note
from turnfold.errors import InputError, TranscriptError
from turnfold.transcripts import decode_one
from turnfold.transcripts.document import Transcript

CHUNK = 1 << 20
QUIET_SECONDS = 10.0
"""How long a command works on a file without a word, where no status line can be shown."""


def read_transcript(name: str) -> Transcript:
    """Return the conversation in a file, `-` for standard input. Raises InputError naming the file."""
    try:
        return decode_one(chunks(name), strict=True)
    except TranscriptError as error:
        raise TranscriptError(f"{name}: {error.place}", error.reason, error.cure) from error


def chunks(name: str) -> Iterator[bytes]:
    """Yield a file's bytes in pieces. Raises InputError when it cannot be read."""
    try:
        if name == "-":
            yield from iter(lambda: sys.stdin.buffer.read(CHUNK), b"")
            return
        with Path(name).open("rb") as file:
            yield from iter(lambda: file.read(CHUNK), b"")
    except OSError as error:
        raise InputError(f"{name}: it cannot be read ({error.strerror}). Give the path of a readable file.") from error


@contextmanager
def reading_progress(name: str, verb: str) -> Iterator[Iterator[bytes]]:
    """Give a file's bytes in pieces; meanwhile standard error tells how far they were taken.

    A terminal shows a status line; elsewhere a line appears every `QUIET_SECONDS`.
    """
    whole = _size(name)
    if error_console.is_terminal:
        with error_console.status(verb) as status:
            yield _counted(name, lambda taken, pace: status.update(_progress(verb, taken, whole, pace)), 0.2)
    else:
        yield _counted(name, lambda taken, pace: note(_progress(verb, taken, whole, pace)), QUIET_SECONDS)


def _size(name: str) -> int | None:
    try:
        return None if name == "-" else Path(name).stat().st_size
    except OSError:
        return None  # reading it says what is wrong


def _progress(verb: str, taken: int, whole: int | None, pace: float) -> str:
    """Return how far a file was taken, in MB, and how fast."""
    of = f" of {whole / 1e6:.0f} MB ({100 * taken // max(whole, 1)} %)" if whole else " MB"
    return f"{verb}: {taken / 1e6:.0f}{of}, {pace / 1e6:.1f} MB/s"


def _counted(name: str, tell: Callable[[int, float], None], every: float) -> Iterator[bytes]:
    """Yield a file's pieces; call `tell` with the bytes taken and those per second, at most once in `every` seconds."""
    taken, start = 0, time.monotonic()
    told = start
    for piece in chunks(name):
        yield piece
        taken += len(piece)
        now = time.monotonic()
        if now - told >= every:
            tell(taken, taken / (now - start))
            told = now


def named_after(name: str) -> str:
    """Return what a conversation without a name of its own is called: as its file, without folder and ending."""
    return "imported" if name == "-" else Path(name).stem or "imported"


def check_writable(name: str, *, force: bool) -> None:
    """Raise InputError when a file must not be overwritten; called before any work is done."""
    if Path(name).exists() and not force:
        raise InputError(f"{name}: it exists already. Give another name, or --force to overwrite it.")


def write_file(name: str, data: Iterable[bytes]) -> None:
    """Write a file whole, or not at all: a temporary file beside it takes its place at the end."""
    target = Path(name)
    partial = target.with_name(f".{target.name}.partial")
    try:
        with partial.open("wb") as file:
            file.writelines(data)
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise InputError(f"{name}: it cannot be written ({error.strerror}). Give a writable path.") from error
