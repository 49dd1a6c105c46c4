"""`turnfold branch`: list, fork, switch, rewind, regenerate. Nothing that was said is changed."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from turnfold.cli import options
from turnfold.cli.reading import session_of
from turnfold.cli.terminal import console, print_json, run, table
from turnfold.errors import InputError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("branch")(branch)


def branch(
    fork: Annotated[str | None, typer.Option("--fork", help="Make a branch of this name.")] = None,
    at: Annotated[str | None, typer.Option("--at", help="The message that the fork ends with.")] = None,
    switch: Annotated[str | None, typer.Option("--switch", help="Go on in this branch.")] = None,
    rewind: Annotated[str | None, typer.Option("--rewind", help="Go on from this message, in a new branch.")] = None,
    regenerate: Annotated[bool, typer.Option("--regenerate", help="Go on from the latest user message.")] = False,
    store: options.Store = None,
    tenant: options.Tenant = None,
    user: options.User = None,
    conversation: options.Conversation = None,
    as_json: options.AsJson = False,
) -> None:
    """List the branches, or make and switch them."""
    flags = {"store": store, "tenant": tenant, "user": user, "conversation": conversation}
    asked = [name for name, given in (("--fork", fork), ("--switch", switch), ("--rewind", rewind)) if given]
    asked += ["--regenerate"] if regenerate else []
    if len(asked) > 1:
        raise InputError(f"{' and '.join(asked)} exclude each other. Give one of them.")
    if at is not None and fork is None:
        raise InputError("--at goes with --fork. Give --fork NAME as well.")
    document = run(_branch(fork, at, switch, rewind, flags, regenerate=regenerate))
    if as_json:
        return print_json(document)
    rows = [
        (
            "*" if row["name"] == document["in_use"] else "",
            row["name"],
            row["parent"] or "",
            row["fork_position"],
            row["seq"],
        )
        for row in document["branches"]
    ]
    console().print(table("Branches", ("", "name", "from", "at", "messages"), rows))
    return None


async def _branch(
    fork: str | None,
    at: str | None,
    switch: str | None,
    rewind: str | None,
    flags: dict[str, Any],
    *,
    regenerate: bool,
) -> dict[str, Any]:
    writes = any((fork, switch, rewind, regenerate))
    async with session_of(write=writes, **flags) as session:
        if fork:
            await session.fork(fork, at=at)
        elif switch:
            await session.switch(switch)
        elif rewind:
            await session.rewind(rewind)
        elif regenerate:
            await session.regenerate()
        branches = await session.store.branches(session.key)
        return {"in_use": session.branch, "branches": [msgspec.to_builtins(found) for found in branches]}
