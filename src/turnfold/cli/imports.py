"""`turnfold import`: bring a conversation file into the store, once, however often it is done."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from turnfold import wiring
from turnfold.cli import options
from turnfold.cli.files import chunks
from turnfold.cli.terminal import console, error_console, note, print_json, run, table
from turnfold.errors import TranscriptError
from turnfold.session.importing import Imported, import_events
from turnfold.transcripts import iter_decode


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("import")(import_file)


def import_file(
    file: Annotated[str, typer.Argument(help="A conversation file of any known format; - for standard input.")],
    store: options.Store = None,
    tenant: options.Tenant = None,
    user: options.User = None,
    conversation: options.Conversation = None,
    format_name: Annotated[str | None, typer.Option("--format", help="The format (default: by content).")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and count only; nothing is stored.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Import FILE. Broken places are reported and left out; then the exit code is 1."""
    flags = {"store": store, "tenant": tenant, "user": user, "conversation": conversation}
    with error_console.status("importing"):
        imported = run(_import(file, format_name, flags, dry_run=dry_run))
    rows = [report.row() for report in imported]
    problems = [problem for report in imported for problem in report.problems]
    if as_json:
        print_json({"conversations": rows, "problems": problems})
    else:
        columns = tuple(rows[0]) if rows else ()
        console().print(table("Imported" if not dry_run else "Would import", columns, [row.values() for row in rows]))
        for problem in problems[:20]:
            note(problem)
    if problems:
        raise typer.Exit(1)


async def _import(file: str, format_name: str | None, flags: dict[str, Any], *, dry_run: bool) -> list[Imported]:
    settings = options.settings_from(**flags).settings
    store = wiring.memory_store() if dry_run else wiring.open_store(settings)
    named = settings.conversation if flags["conversation"] else None
    async with store:
        try:
            events = iter_decode(chunks(file), format_name=format_name)
            return await import_events(
                store,
                events,
                tenant=settings.tenant,
                user=settings.user,
                conversation_id=named,
                policy=settings.policy(),
                clock=wiring.SystemClock(),
            )
        except TranscriptError as error:
            raise TranscriptError(f"{file}: {error.place}", error.reason, error.cure) from error
