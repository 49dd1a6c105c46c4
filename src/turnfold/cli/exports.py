"""`turnfold export`: write a conversation in a format that other programs read."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from turnfold.cli import options
from turnfold.cli.files import check_writable, write_file
from turnfold.cli.reading import session_of
from turnfold.cli.terminal import note, run
from turnfold.core.summary_row import is_own_summary
from turnfold.transcripts import CODECS, encode
from turnfold.transcripts.document import Transcript

FORMATS = ", ".join(codec.name for codec in CODECS.values() if codec.encode)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export")(export)


def export(
    output: Annotated[str, typer.Argument(help="The file to write; - for standard output.")],
    store: options.Store = None,
    tenant: options.Tenant = None,
    user: options.User = None,
    conversation: options.Conversation = None,
    branch: options.BranchName = None,
    format_name: Annotated[str, typer.Option("--format", help=f"One of: {FORMATS}.")] = "turnfold",
    context: Annotated[bool, typer.Option("--context", help="Only what the model sees, the summary included.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Export a branch: every message, or with --context what the model sees."""
    if output != "-":
        check_writable(output, force=force)
    flags = {"store": store, "tenant": tenant, "user": user, "conversation": conversation}
    transcript = run(_transcript(branch, flags, context=context))
    pieces = encode(transcript, format_name)
    if output == "-":
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    write_file(output, pieces)
    note(f"{len(transcript.messages)} messages written to {output}")


async def _transcript(branch: str | None, flags: dict[str, Any], *, context: bool) -> Transcript:
    async with session_of(write=False, branch=branch, **flags) as session:
        if context:
            messages = (await session.view()).messages
        else:
            entries = await session.store.read(session.key, branch=session.branch)
            messages = tuple(entry.message for entry in entries if not is_own_summary(entry.message))
        return Transcript(format="turnfold", messages=messages, conversation_id=session.key.conversation_id)
