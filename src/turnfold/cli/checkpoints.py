"""`turnfold checkpoints`: the versions of a conversation's summary, and the whole audit of one."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from turnfold.cli import options
from turnfold.cli.reading import checkpoint_key, reading, require_conversation
from turnfold.cli.terminal import console, print_json, run, table, visible
from turnfold.core.checkpoint import CheckpointRecord
from turnfold.session.conversation import SCENARIO


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("checkpoints")(checkpoints)


def checkpoints(
    store: options.Store = None,
    tenant: options.Tenant = None,
    user: options.User = None,
    conversation: options.Conversation = None,
    scenario: Annotated[str, typer.Option("--scenario", help="The line of checkpoints.")] = SCENARIO,
    explain: Annotated[int | None, typer.Option("--explain", help="Print everything about one version.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """List the checkpoints, newest first, or explain one."""
    flags = {"store": store, "tenant": tenant, "user": user, "conversation": conversation}
    document = run(_explain(scenario, explain, flags) if explain else _list(scenario, flags))
    if as_json:
        return print_json(document)
    out = console()
    if explain:
        out.print(visible(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()), markup=False)
        return None
    columns = ("version", "mode", "covers", "tokens", "calls", "trigger", "invalidated")
    rows = [[str(row[name] if row[name] is not None else "") for name in columns] for row in document["checkpoints"]]
    out.print(table(f"{document['conversation']}#{scenario}", columns, rows))
    return None


async def all_records(store: Any, key: Any) -> list[CheckpointRecord]:
    """Return every version of a key, newest first."""
    records: list[CheckpointRecord] = []
    while page := await store.newest(key, before=records[-1].version if records else None, limit=100):
        records += page
    return records


async def _list(scenario: str, flags: dict[str, Any]) -> dict[str, Any]:
    async with reading(**flags) as (store, settings):
        await require_conversation(store, settings)
        records = await all_records(store, checkpoint_key(settings, scenario))
        return {"conversation": settings.conversation, "checkpoints": [_row(record) for record in records]}


def _row(record: CheckpointRecord) -> dict[str, Any]:
    checkpoint = record.checkpoint
    if checkpoint is None:
        return {
            "version": record.version,
            "mode": f"unknown format {record.format}",
            "covers": None,
            "tokens": None,
            "calls": None,
            "trigger": None,
            "invalidated": record.invalidated,
        }
    audit, coverage = checkpoint.audit, checkpoint.coverage
    return {
        "version": record.version,
        "mode": audit.mode,
        "covers": coverage.count if coverage else 0,
        "tokens": f"{audit.tokens_before} → {audit.tokens_after}",
        "calls": audit.calls,
        "trigger": audit.trigger,
        "invalidated": record.invalidated,
    }


async def _explain(scenario: str, version: int, flags: dict[str, Any]) -> dict[str, Any]:
    async with reading(**flags) as (store, settings):
        record = await store.load(checkpoint_key(settings, scenario), version)
        document: dict[str, Any] = msgspec.to_builtins(record)
        return document
