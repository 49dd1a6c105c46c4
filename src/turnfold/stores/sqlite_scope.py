"""A conversation inside a transaction: the only way to its rows is through its key."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, NamedTuple

from turnfold.errors import NotFoundError
from turnfold.messages.log import ConversationKey
from turnfold.stores.sqlite_file import DIALECT, run
from turnfold.stores.statements import load_statements


class Scope(NamedTuple):
    """One conversation of the current transaction. `number` stands for its key in every table, for this transaction."""

    connection: sqlite3.Connection
    key: ConversationKey
    number: int

    def run(self, name: str, /, **values: Any) -> sqlite3.Cursor:
        """Execute a named statement on this conversation."""
        return run(self.connection, name, conversation=self.number, **values)

    def run_many(self, name: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Execute a named statement once for each row. The rows must begin with `number`."""
        self.connection.executemany(load_statements(DIALECT)[name].sql, rows)


def find_scope(connection: sqlite3.Connection, key: ConversationKey) -> Scope | None:
    """Return the conversation, None for none."""
    found = run(
        connection, "conversation", tenant=key.tenant, user=key.user, conversation_id=key.conversation_id
    ).fetchone()
    return None if found is None else Scope(connection, key, found[0])


def require_scope(connection: sqlite3.Connection, key: ConversationKey) -> Scope:
    """Return the conversation. Raises NotFoundError."""
    scope = find_scope(connection, key)
    if scope is None:
        raise NotFoundError("conversation", str(key))
    return scope


def make_scope(connection: sqlite3.Connection, key: ConversationKey, now_ms: int) -> Scope:
    """Return the conversation, added as needed."""
    scope = find_scope(connection, key)
    if scope is not None:
        return scope
    added = run(
        connection,
        "add_conversation",
        tenant=key.tenant,
        user=key.user,
        conversation_id=key.conversation_id,
        updated_at=now_ms,
    )
    return Scope(connection, key, added.lastrowid or 0)
