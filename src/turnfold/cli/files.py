"""Reading and writing the files that users name, with one clear message for each way that fails."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from turnfold.errors import InputError, TranscriptError
from turnfold.transcripts import decode_one
from turnfold.transcripts.document import Transcript

CHUNK = 1 << 20


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


def check_writable(name: str, *, force: bool) -> None:
    """Raise InputError when a file must not be overwritten; called before any work is done."""
    if Path(name).exists() and not force:
        raise InputError(f"{name}: it exists already. Give another name, or --force to overwrite it.")


def write_file(name: str, data: Iterator[bytes]) -> None:
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
