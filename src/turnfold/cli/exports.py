"""`turnfold export`: write a conversation in a format that other programs read."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from turnfold.cli import options
from turnfold.cli.files import check_writable
from turnfold.cli.reading import session_of
from turnfold.cli.terminal import error_console, run
from turnfold.cli.writing import (
    TARGETS,
    counted,
    require_room_for_json,
    require_written,
    tell_written,
    write_pieces,
    written,
)
from turnfold.core.summary_row import is_own_summary
from turnfold.errors import InputError
from turnfold.messages.log import MAIN
from turnfold.messages.model import Message
from turnfold.session import Session
from turnfold.transcripts import encode, holds_branches
from turnfold.transcripts.document import BranchPath, Transcript


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
    format_name: Annotated[str, typer.Option("--format", help=f"One of: {', '.join(TARGETS)}.")] = "turnfold",
    context: Annotated[bool, typer.Option("--context", help="Only what the model sees, the summary included.")] = False,
    every_branch: Annotated[
        bool, typer.Option("--all", help="Every branch; for turnfold, markdown and html, whose files hold branches.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be written; nothing is.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Export a branch: every message, or with --context what the model sees."""
    _check(output, format_name, context=context, every_branch=every_branch, as_json=as_json and not dry_run)
    if output != "-" and not dry_run:
        check_writable(output, force=force)
    flags = {"store": store, "tenant": tenant, "user": user, "conversation": conversation}
    with error_console.status("exporting"):
        transcript = run(_transcript(branch, flags, context=context, every_branch=every_branch))
    row = written(transcript, format_name, 1)
    write_pieces(counted(encode(transcript, format_name), row), output, dry_run=dry_run)
    tell_written([row], output, dry_run=dry_run, as_json=as_json)


def _check(output: str, format_name: str, *, context: bool, every_branch: bool, as_json: bool) -> None:
    """Raise InputError for options that do not go together, before anything is read."""
    require_written(format_name)
    require_room_for_json(output, as_json=as_json)
    if every_branch and context:
        raise InputError("--all and --context: what the model sees is one branch. Give one of the two.")
    if every_branch and not holds_branches(Transcript(format="turnfold"), format_name):
        raise InputError(f"--all: {format_name} holds one path. Use turnfold, markdown or html, or choose a --branch.")


async def _transcript(branch: str | None, flags: dict[str, Any], *, context: bool, every_branch: bool) -> Transcript:
    async with session_of(write=False, branch=branch, **flags) as session:
        if context:
            messages = (await session.view()).messages
        else:
            messages = await _path(session, MAIN if every_branch else session.branch)
        branches = await _branches(session) if every_branch else ()
        return Transcript(
            format="turnfold", messages=messages, branches=branches, conversation_id=session.key.conversation_id
        )


async def _path(session: Session, branch: str, after: int = 0) -> tuple[Message, ...]:
    entries = await session.store.read(session.key, branch=branch, after=after)
    return tuple(entry.message for entry in entries if not is_own_summary(entry.message))


async def _branches(session: Session) -> tuple[BranchPath, ...]:
    """Return every branch but the main one: the message that it leaves its parent after, and its own messages."""
    found = []
    for branch in await session.store.branches(session.key):
        if branch.parent is not None:
            before = await _path_end(session, branch.parent, branch.fork_position)
            own = await _path(session, branch.name, branch.fork_position)
            found.append(BranchPath(name=branch.name, parent=branch.parent, after=before, messages=own))
    return tuple(found)


async def _path_end(session: Session, branch: str, position: int) -> str | None:
    """Return the id of the last exported row among the first `position` of a path, None when there is none."""
    while position > 0:
        (entry,) = await session.store.read(session.key, branch=branch, after=position - 1, limit=1)
        if not is_own_summary(entry.message):
            return entry.message.id
        position -= 1
    return None
