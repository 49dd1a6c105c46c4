"""Reading conversation files for `inspect` and `convert`: one conversation at a time, with progress and named errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from turnfold.cli.files import reading_progress
from turnfold.errors import NotFoundError, TranscriptError
from turnfold.transcripts import iter_decode
from turnfold.transcripts.document import Transcript, nothing_found, transcripts_of

File = Annotated[str, typer.Argument(help="A conversation file of any known format; - for standard input.")]
FormatName = Annotated[str | None, typer.Option("--format", help="The file's format (default: by content).")]
Which = Annotated[
    str | None,
    typer.Option("--conversation", "-c", help="Only this conversation of the file: its id, or its number from 1."),
]


@contextmanager
def transcripts_in(file: str, verb: str, format_name: str | None, which: str | None) -> Iterator[Iterator[Transcript]]:
    """Give the conversations of a file, one at a time.

    Raises TranscriptError naming the file, also when it holds no message; NotFoundError when it does not hold `which`.
    """
    with reading_progress(file, verb) as pieces:
        yield _read(file, pieces, format_name, which)


def _read(file: str, pieces: Iterator[bytes], format_name: str | None, which: str | None) -> Iterator[Transcript]:
    found, empty = 0, []
    try:
        for number, transcript in enumerate(transcripts_of(iter_decode(pieces, format_name=format_name)), 1):
            if which is not None and which not in (transcript.conversation_id, str(number)):
                continue
            found += 1
            if not transcript.message_count:
                empty.append(transcript)
            yield transcript
        if found == len(empty) and (which is None or found):
            raise nothing_found(empty)
    except TranscriptError as error:
        raise TranscriptError(f"{file}: {error.place}", error.reason, error.cure) from error
    if not found:
        raise NotFoundError(
            "conversation", str(which), f"{file} does not hold it. `turnfold inspect` lists what it holds."
        )
