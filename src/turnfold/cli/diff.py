"""`turnfold diff`: what changed from one checkpoint to the next."""

from __future__ import annotations

import difflib
from typing import Annotated, Any

import typer

from turnfold.cli import options
from turnfold.cli.reading import checkpoint_key, reading, require_conversation
from turnfold.cli.terminal import console, print_json, run, visible
from turnfold.core.checkpoint import Checkpoint
from turnfold.errors import InputError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("diff")(diff)


def diff(
    old: Annotated[int, typer.Argument(help="The older version; 0 for none.")],
    new: Annotated[int, typer.Argument(help="The newer version.")],
    store: options.Store = None,
    tenant: options.Tenant = None,
    user: options.User = None,
    conversation: options.Conversation = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what a newer checkpoint covers and says that an older one does not."""
    flags = {"store": store, "tenant": tenant, "user": user, "conversation": conversation}
    document = run(_diff(old, new, flags))
    if as_json:
        return print_json(document)
    out = console()
    out.print(f"covers {document['covered'][0]} → {document['covered'][1]} messages")
    out.print(f"masks {document['masks'][0]} → {document['masks'][1]} tool results")
    out.print(visible("\n".join(document["summary_diff"]) or "the summary is the same"), markup=False)
    return None


async def _diff(old: int, new: int, flags: dict[str, Any]) -> dict[str, Any]:
    async with reading(**flags) as (store, settings):
        await require_conversation(store, settings)
        key = checkpoint_key(settings)
        before = (await store.load(key, old)).checkpoint if old else None
        after = (await store.load(key, new)).checkpoint
        if after is None or (old and before is None):
            raise InputError("one of the versions has a format that this release does not know. Upgrade turnfold.")
        return {
            "versions": [old, new],
            "covered": [_covered(before), _covered(after)],
            "masks": [len(before.masks) if before else 0, len(after.masks)],
            "summary_diff": list(
                difflib.unified_diff(
                    _lines(before), _lines(after), f"version {old}", f"version {new}", lineterm="", n=1
                )
            ),
        }


def _covered(checkpoint: Checkpoint | None) -> int:
    return checkpoint.coverage.count if checkpoint and checkpoint.coverage else 0


def _lines(checkpoint: Checkpoint | None) -> list[str]:
    return (checkpoint.summary or "").splitlines() if checkpoint else []
