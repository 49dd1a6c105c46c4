"""`verify` on a SQLite connection: the file's own structure, then every conversation. Synchronous."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from turnfold.core.checkpoint import CheckpointKey
from turnfold.errors import ChainError, CorruptRowError
from turnfold.messages.log import ConversationKey
from turnfold.stores.paths import Head
from turnfold.stores.rows import Stored, chain_text, to_record
from turnfold.stores.sqlite_file import run
from turnfold.stores.sqlite_log import LARGEST, all_heads, fork_point
from turnfold.stores.sqlite_scope import Scope, require_scope
from turnfold.stores.verification import Findings, check_branch, check_checkpoints

PAGE = 500
"""Conversations listed at a time."""


def check_file(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return what SQLite itself finds wrong with the file: pages, indexes and foreign keys."""
    found = [text for (text,) in connection.execute("PRAGMA integrity_check(10)") if text != "ok"]
    orphans = [
        f"a row of {table} belongs to no {parent}"
        for table, _, parent, _ in connection.execute("PRAGMA foreign_key_check")
    ]
    return tuple(found + orphans[:10])


def list_keys(connection: sqlite3.Connection, after: int) -> tuple[tuple[int, ConversationKey], ...]:
    """Return the next conversations with their numbers, from beyond number `after`."""
    rows = run(connection, "every_conversation", after=after, limit=PAGE)
    return tuple(
        (number, ConversationKey(tenant=tenant, user=user, conversation_id=name)) for number, tenant, user, name in rows
    )


def check_conversation(connection: sqlite3.Connection, key: ConversationKey) -> Findings:
    """Check one conversation up to its first difference. NotFoundError for no such conversation."""
    scope = require_scope(connection, key)
    messages = checkpoints = 0
    try:
        for head in all_heads(scope):
            start = fork_point(scope, head, head.node.fork_position)[0]
            messages += check_branch(key, start, head.node.fork_seq, _own_rows(scope, head), head.branch)
        for (scenario,) in scope.run("scenarios").fetchall():
            checkpoints += _check_line(scope, scenario)
    except (ChainError, CorruptRowError, ValueError) as error:
        return Findings(messages, checkpoints, str(error))
    return Findings(messages, checkpoints, None)


def _own_rows(scope: Scope, head: Head) -> Iterator[Stored]:
    """Yield what the branch owns, rows beyond its recorded end included."""
    after = head.node.fork_position
    for row in scope.run("rows", branch=head.node.number, after=after, through=LARGEST):
        yield Stored(head.node.name, *row)


def _check_line(scope: Scope, scenario: str) -> int:
    key = CheckpointKey(
        tenant=scope.key.tenant, user=scope.key.user, conversation_id=scope.key.conversation_id, scenario=scenario
    )
    records = [to_record(key, *row) for row in scope.run("checkpoints_in_order", scenario=scenario)]
    check_checkpoints(key, records, lambda message_id: _chain_at(scope, message_id))
    return len(records)


def _chain_at(scope: Scope, message_id: str) -> tuple[int, str] | None:
    row = scope.run("row_by_id", message_id=message_id).fetchone()
    if row is None:
        return None
    stored = Stored._make(row)
    return stored.seq, chain_text(stored.chain)
