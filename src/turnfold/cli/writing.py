"""Writing conversations in the formats that leave turnfold, and telling what they keep and leave out."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from turnfold.cli.files import write_file
from turnfold.cli.terminal import console, error_console, note, print_json, summary_table
from turnfold.errors import InputError
from turnfold.transcripts import CODECS, holds_branches
from turnfold.transcripts.document import Transcript
from turnfold.transcripts.sendable import ENCODERS, violations_of

TARGETS = tuple(codec.name for codec in CODECS.values() if codec.encode)
"""Formats that are written."""


def require_written(name: str) -> None:
    """Raise InputError for a format that is not written, before anything is read."""
    if name not in TARGETS:
        raise InputError(f"{name!r} is no format that is written. Choose one of: {', '.join(TARGETS)}.")


def require_room_for_json(output: str, *, as_json: bool) -> None:
    """Raise InputError when JSON and conversation would both go to standard output."""
    if as_json and output == "-":
        raise InputError("--json and the conversation would both go to standard output. Give a file to write.")


def written(transcript: Transcript, to: str, number: int) -> dict[str, Any]:
    """Return what becomes of a transcript in a format, as a JSON object; `bytes` is still to be counted."""
    keeps = holds_branches(transcript, to)
    opaque = len(transcript.opaque) if to != "turnfold" and not (to == transcript.format == "letta") else 0
    violations = violations_of(transcript, (to,))[to] if to in ENCODERS else ()
    return {
        "conversation_id": transcript.conversation_id or str(number),
        "from": transcript.format,
        "messages": transcript.message_count if keeps else len(transcript.messages),
        "branches": len(transcript.branches) if keeps else 0,
        "branches_left_out": 0 if keeps else len(transcript.branches),
        "opaque_left_out": opaque,
        "broken_rules": len(violations),
        "problem_count": transcript.problem_count,
        "bytes": 0,
    }


def counted(pieces: Iterable[bytes], row: dict[str, Any]) -> Iterator[bytes]:
    """Pass pieces on and count their bytes in `row`."""
    for piece in pieces:
        row["bytes"] += len(piece)
        yield piece


def write_pieces(pieces: Iterable[bytes], output: str, *, dry_run: bool) -> None:
    """Write pieces to a file, whole or not at all, or to standard output; in a dry run only make them."""
    if dry_run:
        for _ in pieces:
            pass
    elif output == "-":
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    else:
        write_file(output, pieces)


def tell_written(rows: list[dict[str, Any]], output: str, *, dry_run: bool, as_json: bool) -> None:
    """Print what was written: a table, on standard error where the conversation has standard output, or JSON."""
    if as_json:
        print_json({"dry_run": dry_run, "output": output, "conversations": rows})
        return
    title = f"{'Would be written' if dry_run else 'Written'} to {'standard output' if output == '-' else output}"
    out = error_console if output == "-" and not dry_run else console()
    out.print(summary_table(title, rows, first="conversation_id"))
    if any(row["broken_rules"] for row in rows):
        note("A provider would refuse the result as it is: `turnfold inspect` says why.")
    if any(row["branches_left_out"] for row in rows):
        note("The format holds one path; --to turnfold keeps every branch.")
