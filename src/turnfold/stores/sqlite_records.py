"""Checkpoints and state on a SQLite connection, each operation inside the caller's transaction. Synchronous."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from turnfold.core.checkpoint import CheckpointKey, CheckpointRecord
from turnfold.errors import NotFoundError, VersionConflict
from turnfold.messages.log import MAIN, ConversationKey
from turnfold.ports import Changes
from turnfold.stores.rows import Prepared, to_record
from turnfold.stores.sqlite_log import LARGEST, add_rows, find_head, make_head, read_path, require_head
from turnfold.stores.sqlite_scope import Scope, find_scope, make_scope, require_scope


def save(
    connection: sqlite3.Connection,
    key: CheckpointKey,
    body: bytes,
    stored_format: int,
    *,
    expected_version: int,
    rows: Sequence[Prepared],
    branch: str,
    now_ms: int,
) -> int:
    """As `CheckpointStore.save`, for an encoded checkpoint."""
    scope = make_scope(connection, key.conversation, now_ms)
    found = _head_version(scope, key.scenario)
    if found != expected_version:
        raise VersionConflict(f"checkpoint {key}", expected_version, found)
    version = expected_version + 1
    scope.run("add_checkpoint", scenario=key.scenario, version=version, format=stored_format, body=body)
    scope.run("touch_conversation", updated_at=now_ms)
    if rows:
        add_rows(scope, make_head(scope, branch, now_ms), rows, now_ms)
    return version


def _head_version(scope: Scope, scenario: str) -> int:
    return int(scope.run("checkpoint_head", scenario=scenario).fetchone()[0])


def head_version(connection: sqlite3.Connection, key: CheckpointKey) -> int:
    """As `CheckpointStore.head_version`."""
    scope = find_scope(connection, key.conversation)
    return _head_version(scope, key.scenario) if scope else 0


def changes(connection: sqlite3.Connection, key: CheckpointKey, *, branch: str, after: int) -> Changes:
    """As `Store.changes`."""
    find = find_scope if branch == MAIN else require_scope
    scope = find(connection, key.conversation)
    if scope is None:
        return Changes()
    version = _head_version(scope, key.scenario)
    head = find_head(scope, branch) if branch == MAIN else require_head(scope, branch)
    if head is None:
        return Changes(head_version=version)
    return Changes(
        head_version=version, position=head.branch.position, entries=read_path(scope, head, after=after, limit=None)
    )


def load(connection: sqlite3.Connection, key: CheckpointKey, version: int) -> CheckpointRecord:
    """As `CheckpointStore.load`."""
    scope = find_scope(connection, key.conversation)
    row = scope and scope.run("checkpoint", scenario=key.scenario, version=min(version, LARGEST)).fetchone()
    if row is None:
        raise _not_found(key, version)
    return to_record(key, *row)


def _not_found(key: CheckpointKey, version: int) -> NotFoundError:
    return NotFoundError("checkpoint", f"{key} version {version}")


def newest(
    connection: sqlite3.Connection, key: CheckpointKey, *, before: int | None, limit: int
) -> tuple[CheckpointRecord, ...]:
    """As `CheckpointStore.newest`."""
    scope = find_scope(connection, key.conversation)
    if scope is None:
        return ()
    below = LARGEST if before is None else min(before, LARGEST)
    rows = scope.run("newest_checkpoints", scenario=key.scenario, before=below, limit=min(limit, LARGEST))
    return tuple(to_record(key, *row) for row in rows)


def invalidate(connection: sqlite3.Connection, key: CheckpointKey, version: int, reason: str) -> None:
    """As `CheckpointStore.invalidate`."""
    scope = find_scope(connection, key.conversation)
    if scope is None or not 1 <= version <= _head_version(scope, key.scenario):
        raise _not_found(key, version)
    scope.run("invalidate_checkpoint", scenario=key.scenario, version=version, reason=reason)


def get_state(connection: sqlite3.Connection, key: ConversationKey, name: str) -> tuple[int, bytes]:
    """As `StateStore.get_state`."""
    scope = find_scope(connection, key)
    row = scope and scope.run("state", name=name).fetchone()
    return (0, b"") if row is None else (row[0], row[1])


def put_state(
    connection: sqlite3.Connection,
    key: ConversationKey,
    name: str,
    document: bytes,
    *,
    expected_version: int,
    now_ms: int,
) -> int:
    """As `StateStore.put_state`."""
    found, _ = get_state(connection, key, name)
    if found != expected_version:
        raise VersionConflict(f"state {name!r} of {key}", expected_version, found)
    scope = make_scope(connection, key, now_ms)
    scope.run("put_state", name=name, version=found + 1, document=document)
    scope.run("touch_conversation", updated_at=now_ms)
    return found + 1
