"""`turnfold log`: every message of a conversation, hidden ones included, and the conversations of a store."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from turnfold.cli import options
from turnfold.cli.reading import reading, session_of
from turnfold.cli.terminal import console, message_line, print_json, run, table


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("log")(log)


def log(
    store: options.Store = None,
    tenant: options.Tenant = None,
    user: options.User = None,
    conversation: options.Conversation = None,
    branch: options.BranchName = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="The newest messages to show.")] = 50,
    all_conversations: Annotated[bool, typer.Option("--list", help="List the user's conversations instead.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show the newest messages of a conversation, in context or not."""
    flags = {"store": store, "tenant": tenant, "user": user, "conversation": conversation}
    document = run(_list(flags) if all_conversations else _log(branch, limit, flags))
    if as_json:
        return print_json(document)
    if all_conversations:
        listed = [(row["conversation"], len(row["branches"]), row["rows"]) for row in document["conversations"]]
        console().print(table("Conversations", ("conversation", "branches", "rows"), listed))
        return None
    rows = [
        (row["seq"] or "", "in context" if row["in_context"] else "hidden", row["type"], row["id"], row["text"])
        for row in document["messages"]
    ]
    console().print(table(f"{document['conversation']} @ {document['branch']}", ("seq", "", "", "id", "text"), rows))
    return None


async def _log(branch: str | None, limit: int, flags: dict[str, Any]) -> dict[str, Any]:
    async with session_of(write=False, branch=branch, **flags) as session:
        head = await session.store.head(session.key, branch=session.branch)
        entries = await session.store.read(session.key, branch=session.branch, after=max(0, head.position - limit))
        visible = set(await session.context_ids())
        return {
            "conversation": session.key.conversation_id,
            "branch": session.branch,
            "total": head.position,
            "messages": [
                {
                    "id": entry.message.id,
                    "seq": entry.seq,
                    "position": entry.position,
                    "branch": entry.branch,
                    "role": entry.message.role,
                    "type": "summary_message" if entry.message.kind == "summary" else entry.message.role,
                    "kind": entry.message.kind,
                    "at": _time(entry.message.created_at),
                    "in_context": entry.message.id in visible,
                    "text": message_line(entry.message, 200),
                }
                for entry in entries
            ],
        }


def _time(created_at: int | None) -> str | None:
    return None if created_at is None else datetime.fromtimestamp(created_at / 1000, UTC).isoformat()


async def _list(flags: dict[str, Any]) -> dict[str, Any]:
    async with reading(**flags) as (store, settings):
        rows: list[dict[str, Any]] = []
        after = None
        while page := await store.conversations(tenant=settings.tenant, user=settings.user, after=after):
            rows += [
                {"conversation": info.key.conversation_id, "branches": list(info.branches), "rows": info.rows}
                for info in page
            ]
            after = page[-1].key
        return {"conversations": rows}
