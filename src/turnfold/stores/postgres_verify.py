"""`verify` on a PostgreSQL connection, each conversation on one snapshot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from turnfold.core.checkpoint import CheckpointKey
from turnfold.errors import ChainError, CorruptRowError
from turnfold.messages.log import ConversationKey
from turnfold.stores.paths import Head
from turnfold.stores.postgres_database import Connection, key_values
from turnfold.stores.postgres_log import LARGEST, fork_point, require_conversation, to_head, to_row
from turnfold.stores.postgres_records import record_of
from turnfold.stores.rows import Stored, chain_text
from turnfold.stores.verification import Findings, check_branch, check_checkpoints

PAGE: Final = 500
"""Conversations listed at a time."""


async def list_keys(db: Connection, after: ConversationKey | None) -> tuple[ConversationKey, ...]:
    """Return the next conversations in key order. The least key is a conversation's too, so a first page begins before it."""
    start = key_values(after or ConversationKey(conversation_id=""))
    rows = await db.rows("every_conversation", {**start, "limit": PAGE})
    keys = tuple(
        ConversationKey(tenant=tenant.decode(), user=user.decode(), conversation_id=name.decode())
        for tenant, user, name in rows
    )
    if after is None and await db.row("conversation", start) is not None:
        return (ConversationKey(conversation_id=""), *keys)
    return keys


async def check_conversation(db: Connection, key: ConversationKey) -> Findings:
    """Check one conversation up to its first difference. NotFoundError for no such conversation."""
    await require_conversation(db, key)
    messages = checkpoints = 0
    try:
        heads = [to_head(key, row) for row in await db.rows("branches", key_values(key))]
        chains: dict[str, tuple[int, str]] = {}
        for head in heads:
            start = (await fork_point(db, key, _path(heads, head), head.node.fork_position))[0]
            rows = [row async for row in _own_rows(db, key, head)]
            messages += check_branch(key, start, head.node.fork_seq, rows, head.branch)
            chains.update((row.message_id, (row.seq, chain_text(row.chain))) for row in rows)
        checkpoints = await _check_lines(db, key, chains)
    except (ChainError, CorruptRowError, ValueError) as error:
        return Findings(messages, checkpoints, str(error))
    return Findings(messages, checkpoints, None)


def _path(heads: Sequence[Head], leaf: Head) -> tuple[Head, ...]:
    return (leaf, *(head for head in heads if head is not leaf))


async def _own_rows(db: Connection, key: ConversationKey, head: Head) -> AsyncIterator[Stored]:
    """Yield what the branch owns, rows beyond its recorded end included."""
    values = {"branch": head.node.number, "after": head.node.fork_position, "limit": LARGEST}
    for row in await db.rows("own_rows", {**key_values(key), **values}):
        yield to_row(head.node.name, row)


async def _check_lines(db: Connection, key: ConversationKey, chains: dict[str, tuple[int, str]]) -> int:
    lines: dict[str, list[tuple[object, ...]]] = {}
    for scenario, *row in await db.rows("checkpoints_in_order", key_values(key)):
        lines.setdefault(scenario.decode(), []).append(tuple(row))
    for scenario, rows in lines.items():
        line = CheckpointKey(tenant=key.tenant, user=key.user, conversation_id=key.conversation_id, scenario=scenario)
        check_checkpoints(line, [record_of(line, row) for row in rows], chains.get)
    return sum(map(len, lines.values()))
