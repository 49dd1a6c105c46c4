"""`turnfold checkpoints`: the versions of a conversation's summary, and the whole audit of one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import typer

from turnfold.cli import options
from turnfold.cli.reading import checkpoint_key, reading, require_conversation
from turnfold.cli.terminal import console, print_json, run, table, visible
from turnfold.core.checkpoint import Audit, Checkpoint, CheckpointRecord, Retention
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
    if explain is not None:
        return _print_explained(run(_load(scenario, explain, flags)), as_json=as_json)
    document = run(_list(scenario, flags))
    if as_json:
        return print_json(document)
    columns = ("version", "mode", "covers", "tokens", "calls", "trigger", "invalidated")
    rows = [[str(row[name] if row[name] is not None else "") for name in columns] for row in document["checkpoints"]]
    console().print(table(f"{document['conversation']}#{scenario}", columns, rows))
    return None


async def all_records(store: Any, key: Any) -> list[CheckpointRecord]:
    """Return every version of a key, newest first."""
    records: list[CheckpointRecord] = []
    while page := await store.newest(key, before=records[-1].version if records else None, limit=100):
        records += page
    return records


async def _list(scenario: str, flags: dict[str, Any]) -> dict[str, Any]:
    async with reading(**flags) as (store, settings):
        records = await all_records(store, checkpoint_key(settings, scenario))
        if not records:  # a chat product's conversation may have checkpoints and no log
            await require_conversation(store, settings)
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


async def _load(scenario: str, version: int, flags: dict[str, Any]) -> CheckpointRecord:
    async with reading(**flags) as (store, settings):
        return await store.load(checkpoint_key(settings, scenario), version)


def _print_explained(record: CheckpointRecord, *, as_json: bool) -> None:
    if as_json:
        return print_json(complete(record))
    out, checkpoint = console(), record.checkpoint
    state = "" if record.invalidated is None else f", invalidated: {record.invalidated}"
    if checkpoint is None:
        out.print(visible(f"version {record.version}: format {record.format}, unknown to this release{state}"))
        return None
    created = datetime.fromtimestamp(checkpoint.created_at / 1000, UTC).isoformat(timespec="seconds")
    out.print(visible(f"version {record.version}, {created}{state}"), markup=False)
    for title, lines in _sections(checkpoint):
        out.print(f"\n{title}:")
        for line in lines:
            out.print(visible(f"  {line}"), markup=False, soft_wrap=True)
    return None


def complete(value: Any) -> Any:
    """Return a value as plain JSON with every field there, those at their defaults too."""
    if isinstance(value, msgspec.Struct):
        return {name: complete(getattr(value, name)) for name in value.__struct_fields__}
    return [complete(item) for item in value] if isinstance(value, tuple | list) else value


def _sections(checkpoint: Checkpoint) -> Iterator[tuple[str, list[str]]]:
    audit = checkpoint.audit
    yield "made by", _made_by(checkpoint)
    yield "cost", [f"{audit.calls} model calls, {audit.candidates} candidates, {audit.milliseconds} ms", _usage(audit)]
    yield (
        "effect",
        [
            f"{audit.tokens_before} → {audit.tokens_after} tokens of a window of {audit.context_window} ({audit.counter})",
            f"{audit.messages_before} → {audit.messages_after} messages in view",
        ],
    )
    yield "covers", _covers(checkpoint)
    yield "not shown to the summarizer", list(audit.not_shown) or ["nothing: it was shown all that is covered"]
    yield "retention", _retention(audit.retention)
    yield "masks", [f"{mask.message_id} {mask.call_id}: {mask.placeholder}" for mask in checkpoint.masks] or ["none"]
    if audit.reasons:
        yield "reasons", list(audit.reasons)
    if checkpoint.structured is not None:
        yield "structured", msgspec.json.format(msgspec.json.encode(checkpoint.structured)).decode().splitlines()
    yield "summary", (checkpoint.summary or "none").splitlines()


def _made_by(checkpoint: Checkpoint) -> list[str]:
    audit = checkpoint.audit
    parent = "none" if checkpoint.parent_version is None else f"version {checkpoint.parent_version}"
    return [
        f"summarizer {audit.summarizer or 'none'}, model {audit.model or 'none'}, prompts {audit.prompt_hash or 'none'}",
        f"trigger {audit.trigger}, mode {audit.mode}, distilled from {parent}",
        f"fingerprint {checkpoint.fingerprint or 'none'}, format {checkpoint.format}",
    ]


def _usage(audit: Audit) -> str:
    usage = audit.usage
    if usage is None:
        return "no token usage was reported"
    return f"{usage.prompt} tokens in, {usage.output} out, of the provider's own counting"


def _covers(checkpoint: Checkpoint) -> list[str]:
    coverage = checkpoint.coverage
    lines = ["no message"]
    if coverage is not None:
        lines = [
            f"{coverage.count} messages, {coverage.first_id} to {coverage.last_id}",
            f"chain {coverage.chain}; the last {len(coverage.tail)} are recorded with their digests",
        ]
    if checkpoint.pins:
        lines.append(f"shown verbatim all the same: {', '.join(checkpoint.pins)}")
    if checkpoint.open_request_id is not None:
        lines.append(f"request of the open turn, shown verbatim: {checkpoint.open_request_id}")
    if checkpoint.folded:
        lines.append(f"not shown any more, outside the chain: {', '.join(checkpoint.folded)}")
    return lines


def _retention(found: Retention | None) -> list[str]:
    if found is None:
        return ["not measured"]
    missing = ", ".join(found.omitted) or "nothing"
    return [
        f"{found.identifiers_kept} of {found.identifiers_found} identifiers, {found.identifiers_added} added by code",
        f"{found.instructions_kept} of {found.instructions_found} standing instructions",
        f"left out: {missing}",
    ]
