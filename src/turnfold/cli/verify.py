"""`turnfold verify`: re-derive every chain of a store and say where it first differs."""

from __future__ import annotations

from typing import Any

import msgspec
import typer

from turnfold import wiring
from turnfold.cli import options
from turnfold.cli.reading import reading
from turnfold.cli.terminal import console, error_console, print_json, run, visible
from turnfold.messages.log import VerifyReport


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("verify")(verify)


def verify(
    store: options.Store = None,
    tenant: options.Tenant = None,
    user: options.User = None,
    conversation: options.Conversation = None,
    as_json: options.AsJson = False,
) -> None:
    """Check a whole store, or one conversation. Exit code 1 when something differs."""
    flags = {"store": store, "tenant": tenant, "user": user, "conversation": conversation}
    with error_console.status("verifying"):
        report = run(_verify(flags, one=conversation is not None))
    if as_json:
        print_json(msgspec.to_builtins(report))
    else:
        out = console()
        found = f"{report.conversations} conversations, {report.messages} messages, {report.checkpoints} checkpoints"
        out.print(f"{found}: {'all true' if not report.problems else f'{len(report.problems)} problems'}")
        for problem in report.problems:
            out.print(f"- {visible(problem)}", markup=False)
    if report.problems:
        raise typer.Exit(1)


async def _verify(flags: dict[str, Any], *, one: bool) -> VerifyReport:
    async with reading(**flags) as (store, settings):
        return await store.verify(wiring.conversation_key(settings) if one else None)
