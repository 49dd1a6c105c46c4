"""`turnfold import`: bring a conversation file into the store, once, however often it is done."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec.structs import replace

from turnfold import wiring
from turnfold.cli import options
from turnfold.cli.files import named_after, reading_progress
from turnfold.cli.terminal import console, note, print_json, run, summary_table
from turnfold.config.settings import Settings
from turnfold.errors import TranscriptError
from turnfold.messages.log import MAIN, ConversationKey
from turnfold.ports import Store
from turnfold.session.copying import copy_conversation
from turnfold.session.importing import Imported, Prepare, import_events
from turnfold.transcripts import iter_decode

SHOWN_PROBLEMS = 20
"""Problems told one by one; all of them are in the JSON."""


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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be imported; nothing is stored.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Import FILE. Broken places are reported and left out; then the exit code is 1."""
    flags = {"store": store, "tenant": tenant, "user": user, "conversation": conversation}
    settings = options.settings_from(**flags).settings
    imported = run(_import(file, format_name, settings, conversation, dry_run=dry_run))
    if as_json:
        print_json(_document(imported, dry_run=dry_run))
    else:
        _print(imported, dry_run=dry_run)
    if any(report.problem_count for report in imported):
        raise typer.Exit(1)


def _document(imported: list[Imported], *, dry_run: bool) -> dict[str, Any]:
    problems = [
        {"conversation_id": report.conversation_id, "place": problem.place, "reason": problem.reason}
        for report in imported
        for problem in report.problems
    ]
    return {"dry_run": dry_run, "conversations": [report.row() for report in imported], "problems": problems}


def _print(imported: list[Imported], *, dry_run: bool) -> None:
    title = "Would be imported" if dry_run else "Imported"
    console().print(summary_table(title, [report.row() for report in imported], first="conversation_id"))
    for report in imported:
        if report.branch != MAIN:
            note(
                f"{report.conversation_id}: the file's path is branch {report.branch!r}. "
                f"Go on there with: turnfold branch -c {report.conversation_id} --switch {report.branch}"
            )
    problems = [problem for report in imported for problem in report.problems]
    for problem in problems[:SHOWN_PROBLEMS]:
        note(f"{problem.place}: {problem.reason}. {problem.cure}".rstrip())
    total = sum(report.problem_count for report in imported)
    if total > SHOWN_PROBLEMS:
        note(f"{total - SHOWN_PROBLEMS} more problems; --json lists them")


async def _import(
    file: str, format_name: str | None, settings: Settings, conversation: str | None, *, dry_run: bool
) -> list[Imported]:
    opened = _rehearsal(settings) if dry_run else _real(settings)
    async with opened as (store, prepare):
        with reading_progress(file, "importing") as pieces:
            try:
                return await import_events(
                    store,
                    iter_decode(pieces, format_name=format_name),
                    tenant=settings.tenant,
                    user=settings.user,
                    conversation_id=conversation,
                    file_name=named_after(file),
                    policy=settings.policy(),
                    clock=wiring.SystemClock(),
                    prepare=prepare,
                )
            except TranscriptError as error:
                raise TranscriptError(f"{file}: {error.place}", error.reason, error.cure) from error


@asynccontextmanager
async def _real(settings: Settings) -> AsyncIterator[tuple[Store, Prepare | None]]:
    async with wiring.open_store(settings) as store:
        yield store, None


@asynccontextmanager
async def _rehearsal(settings: Settings) -> AsyncIterator[tuple[Store, Prepare | None]]:
    """Open a store beside the real one that is thrown away; each conversation is first copied from the real one."""
    with tempfile.TemporaryDirectory(prefix="turnfold-") as folder:
        elsewhere = replace(settings, store=str(Path(folder) / "rehearsal.db"))
        async with wiring.open_store(elsewhere) as copy:
            if _is_there(settings):
                async with wiring.open_store(settings, read_only=True) as real:
                    yield copy, _Copies(real, copy).prepare
            else:
                yield copy, None


def _is_there(settings: Settings) -> bool:
    return Path(settings.store).expanduser().exists()


class _Copies:
    """Copies each conversation once, when it is about to be looked at."""

    def __init__(self, source: Store, target: Store) -> None:
        self.source, self.target, self.done = source, target, set[ConversationKey]()

    async def prepare(self, key: ConversationKey) -> None:
        if key not in self.done:
            self.done.add(key)
            await copy_conversation(self.source, self.target, key)
