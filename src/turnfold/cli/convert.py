"""`turnfold convert`: write the conversations of a file in another format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from turnfold.cli import options
from turnfold.cli.files import check_writable
from turnfold.cli.transcripts import File, FormatName, Which, transcripts_in
from turnfold.cli.writing import (
    TARGETS,
    counted,
    require_room_for_json,
    require_written,
    tell_written,
    write_pieces,
    written,
)
from turnfold.errors import InputError
from turnfold.transcripts import encode
from turnfold.transcripts.document import Transcript

ONE_EACH = frozenset({"letta", "html"})
"""Formats whose files hold one conversation."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("convert")(convert)


def convert(
    file: File,
    to: Annotated[str, typer.Option("--to", help=f"One of: {', '.join(TARGETS)}.")],
    output: Annotated[str, typer.Option("--output", "-o", help="The file to write; - for standard output.")] = "-",
    conversation: Which = None,
    format_name: FormatName = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output file.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be written; nothing is.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Write the conversations of FILE in another format. Broken places are left out; then the exit code is 1."""
    require_written(to)
    require_room_for_json(output, as_json=as_json and not dry_run)
    if output != "-" and not dry_run:
        check_writable(output, force=force)
    rows: list[dict[str, Any]] = []
    with transcripts_in(file, "converting", format_name, conversation) as found:
        write_pieces(_pieces(found, to, rows), output, dry_run=dry_run)
    tell_written(rows, output, dry_run=dry_run, as_json=as_json)
    if any(row["problem_count"] for row in rows):
        raise typer.Exit(1)


def _pieces(transcripts: Iterable[Transcript], to: str, rows: list[dict[str, Any]]) -> Iterator[bytes]:
    """Yield every conversation in the format; `rows` gathers what became of each."""
    for number, transcript in enumerate(transcripts, 1):
        if number > 1 and to in ONE_EACH:
            raise InputError(f"a file of {to} holds one conversation, this one has more. Choose one by --conversation.")
        row = written(transcript, to, number)
        rows.append(row)
        yield from counted(encode(transcript, to) if transcript.message_count else (), row)
