"""Checkpoints and state on a PostgreSQL connection."""

from __future__ import annotations

from collections.abc import Sequence

from turnfold.core.checkpoint import CheckpointKey, CheckpointRecord
from turnfold.errors import NotFoundError, VersionConflict
from turnfold.messages.log import ConversationKey
from turnfold.stores.paths import Head
from turnfold.stores.postgres_database import Connection, Row, key_values
from turnfold.stores.postgres_log import LARGEST, add_rows, make_head
from turnfold.stores.rows import Prepared, to_record


async def save(
    db: Connection,
    key: CheckpointKey,
    body: bytes,
    stored_format: int,
    *,
    expected_version: int,
    rows: Sequence[Prepared],
    branch: str,
    now_ms: int,
) -> Head | None:
    """As `CheckpointStore.save`, for an encoded checkpoint, inside a transaction. Returns the branch's new head, if it moved."""
    values = key_values(key)
    await db.run("touch_conversation", {**values, "updated_at": now_ms})
    found = await head_version(db, key)
    if found != expected_version:
        raise VersionConflict(f"checkpoint {key}", expected_version, found)
    await db.run("add_checkpoint", {**values, "version": expected_version + 1, "format": stored_format, "body": body})
    if not rows:
        return None
    head = await make_head(db, key.conversation, branch, now_ms)
    added = await add_rows(db, key.conversation, head, rows, now_ms)
    if added is None:
        raise AssertionError("a locked head cannot move")
    return added[1]


async def head_version(db: Connection, key: CheckpointKey) -> int:
    """As `CheckpointStore.head_version`."""
    row = await db.row("checkpoint_head", key_values(key))
    return int(row[0]) if row else 0


async def load(db: Connection, key: CheckpointKey, version: int) -> CheckpointRecord:
    """As `CheckpointStore.load`."""
    row = await db.row("checkpoint", {**key_values(key), "version": max(-LARGEST, min(version, LARGEST))})
    if row is None:
        raise _not_found(key, version)
    return record_of(key, row)


def record_of(key: CheckpointKey, row: Row) -> CheckpointRecord:
    """Decode a row of `checkpoints`. Raises CorruptRowError."""
    version, stored_format, body, invalidated = row
    return to_record(key, version, stored_format, body, None if invalidated is None else invalidated.decode())


def _not_found(key: CheckpointKey, version: int) -> NotFoundError:
    return NotFoundError("checkpoint", f"{key} version {version}")


async def newest(db: Connection, key: CheckpointKey, *, before: int | None, limit: int) -> tuple[CheckpointRecord, ...]:
    """As `CheckpointStore.newest`."""
    below = LARGEST if before is None else max(-LARGEST, min(before, LARGEST))
    rows = await db.rows("newest_checkpoints", {**key_values(key), "before": below, "limit": min(limit, LARGEST)})
    return tuple(record_of(key, row) for row in rows)


async def invalidate(db: Connection, key: CheckpointKey, version: int, reason: str) -> None:
    """As `CheckpointStore.invalidate`."""
    bounded = max(-LARGEST, min(version, LARGEST))
    row = await db.row("invalidate_checkpoint", {**key_values(key), "version": bounded, "reason": reason.encode()})
    if row is None:
        raise _not_found(key, version)


async def get_state(db: Connection, key: ConversationKey, name: str) -> tuple[int, bytes]:
    """As `StateStore.get_state`."""
    row = await db.row("state", {**key_values(key), "name": name.encode("utf-8", "surrogatepass")})
    return (0, b"") if row is None else (row[0], row[1])


async def put_state(
    db: Connection, key: ConversationKey, name: str, document: bytes, *, expected_version: int, now_ms: int
) -> int:
    """As `StateStore.put_state`."""
    expected = max(-1, min(expected_version, LARGEST))
    values = {"name": name.encode(), "document": document, "expected": expected, "updated_at": now_ms}
    row = await db.row("put_state", {**key_values(key), **values})
    if row is None:
        found, _ = await get_state(db, key, name)
        raise VersionConflict(f"state {name!r} of {key}", expected_version, found)
    return int(row[0])
