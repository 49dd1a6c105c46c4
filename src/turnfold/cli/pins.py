"""`turnfold pin` and `turnfold unpin`: messages that stay verbatim through every compaction."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from turnfold.cli import options
from turnfold.cli.reading import session_of
from turnfold.cli.terminal import console, print_json, run

Ids = Annotated[list[str], typer.Argument(help="Message ids, as `turnfold log` shows them.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("pin")(pin)
    app.command("unpin")(unpin)


def pin(
    ids: Ids,
    store: options.Store = None,
    tenant: options.Tenant = None,
    user: options.User = None,
    conversation: options.Conversation = None,
    as_json: options.AsJson = False,
) -> None:
    """Keep messages verbatim. One that is hidden already comes back at the next compaction."""
    flags = {"store": store, "tenant": tenant, "user": user, "conversation": conversation}
    _print(run(_change(ids, flags, add=True)), as_json=as_json)


def unpin(
    ids: Ids,
    store: options.Store = None,
    tenant: options.Tenant = None,
    user: options.User = None,
    conversation: options.Conversation = None,
    as_json: options.AsJson = False,
) -> None:
    """Let messages be summarized again, from the next compaction on."""
    flags = {"store": store, "tenant": tenant, "user": user, "conversation": conversation}
    _print(run(_change(ids, flags, add=False)), as_json=as_json)


async def _change(ids: list[str], flags: dict[str, Any], *, add: bool) -> list[str]:
    async with session_of(write=True, **flags) as session:
        await (session.pin(*ids) if add else session.unpin(*ids))
        return list(await session.pins())


def _print(pinned: list[str], *, as_json: bool) -> None:
    if as_json:
        return print_json({"pinned": pinned})
    console().print(f"pinned: {', '.join(pinned) or 'nothing'}", markup=False)
    return None
