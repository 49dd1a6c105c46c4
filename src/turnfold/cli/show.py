"""`turnfold show`: what the model sees, what is hidden from it, and how full the window is."""

from __future__ import annotations

from typing import Any

import typer

from turnfold.cli import options
from turnfold.cli.reading import session_of
from turnfold.cli.terminal import bar, console, message_line, print_json, reason_list, run, table
from turnfold.session import Session


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("show")(show)


def show(
    store: options.Store = None,
    tenant: options.Tenant = None,
    user: options.User = None,
    conversation: options.Conversation = None,
    branch: options.BranchName = None,
    window: options.Window = None,
    counter: options.Counter = None,
    system: options.System = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what is in context and what is hidden."""
    flags = {
        "store": store,
        "tenant": tenant,
        "user": user,
        "conversation": conversation,
        "context_window": window,
        "counter": counter,
        "system": system,
    }
    document = run(_show(branch, flags))
    if as_json:
        return print_json(document)
    _print(document)
    return None


async def _show(branch: str | None, flags: dict[str, Any]) -> dict[str, Any]:
    async with session_of(write=False, branch=branch, **flags) as session:
        return await describe(session)


async def describe(session: Session) -> dict[str, Any]:
    """Return the context of a session as a JSON object."""
    decision = await session.view()
    checkpoint = session.checkpoint
    coverage = checkpoint.coverage if checkpoint else None
    head = await session.store.head(session.key, branch=session.branch)
    pins = set(await session.pins())
    return {
        "conversation": session.key.conversation_id,
        "branch": session.branch,
        "context_window": session.budget.context_window,
        "input_budget": session.budget.input_budget,
        "trigger_line": session.budget.trigger_line,
        "counter": session.compactor.counter.name,
        "exact": session.compactor.counter.exact,
        "tokens": decision.tokens,
        "checkpoint": checkpoint.version if checkpoint else None,
        "messages": head.seq,
        "hidden": coverage.count if coverage else 0,
        "masked": len(checkpoint.masks) if checkpoint else 0,
        "context_ids": list(await session.context_ids()),
        "context": [
            {
                "id": message.id,
                "role": message.role,
                "type": "summary_message" if message.kind == "summary" else message.kind,
                "pinned": message.id in pins,
                "text": message_line(message, 200),
            }
            for message in decision.messages
        ],
        "reasons": reason_list(decision.reasons),
    }


def _print(document: dict[str, Any]) -> None:
    out = console()
    used, whole = document["tokens"], document["context_window"]
    about = "" if document["exact"] else "~"
    out.print(f"{document['conversation']} @ {document['branch']}", markup=False, style="bold")
    out.print(f"{bar(used, whole)} {about}{used} of {whole} tokens, compacts above {document['trigger_line']}")
    out.print(
        f"{len(document['context_ids'])} messages in context; {document['hidden']} of {document['messages']} hidden behind "
        f"checkpoint {document['checkpoint']}, {document['masked']} results masked"
        if document["checkpoint"]
        else f"{len(document['context_ids'])} messages in context; nothing hidden"
    )
    rows = [
        (("📌 " if row["pinned"] else "") + row["type"].replace("message", row["role"], 1), row["text"])
        if row["type"] == "message"
        else (row["type"], row["text"])
        for row in document["context"]
    ]
    out.print(table("In context", ("", "text"), rows))
