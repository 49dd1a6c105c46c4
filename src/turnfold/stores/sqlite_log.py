"""The log's operations on a SQLite connection, each inside the caller's transaction. Synchronous."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from turnfold.errors import CorruptRowError, DuplicateMessageError, NotFoundError, StoreError, VersionConflict
from turnfold.messages.log import MAIN, Branch, ConversationInfo, ConversationKey, LogEntry
from turnfold.stores.paths import Head, Node, Segment, owner_of_position, owner_of_seq, window
from turnfold.stores.rows import (
    Prepared,
    Stored,
    chain_bytes,
    chain_text,
    decode_counts,
    encode_counts,
    listing_start,
    place,
    require_position,
    to_entry,
    to_stored,
)
from turnfold.stores.sqlite_file import run
from turnfold.stores.sqlite_scope import Scope, find_scope, make_scope, require_scope

LARGEST = 2**63 - 1
"""SQLite's largest integer; a larger bound means the same."""


def find_head(scope: Scope, name: str) -> Head | None:
    """Return a branch, None for none."""
    row = scope.run("branch_by_name", name=name).fetchone()
    return None if row is None else _to_head(scope, row)


def require_head(scope: Scope, name: str) -> Head:
    """Return a branch. Raises NotFoundError."""
    head = find_head(scope, name)
    if head is None:
        raise NotFoundError("branch", name, f"It is not in conversation {str(scope.key)!r}.")
    return head


def all_heads(scope: Scope) -> list[Head]:
    """Return all branches, oldest first."""
    return [_to_head(scope, row) for row in scope.run("branches")]


def _to_head(scope: Scope, row: tuple[Any, ...]) -> Head:
    *columns, parent, chain = row
    node = Node._make(columns)
    branch = Branch(
        name=node.name,
        parent=parent,
        fork_position=node.fork_position,
        position=node.position,
        seq=node.seq,
        chain=_chain_of_branch(scope, node.name, chain),
    )
    return Head(node, branch)


def _chain_of_branch(scope: Scope, name: str, raw: bytes) -> str:
    try:
        return chain_text(raw)
    except ValueError as error:
        raise CorruptRowError(f"{scope.key}: branch {name!r}", str(error)) from error


def _lookup(scope: Scope, number: int) -> Node:
    row = scope.run("branch_by_number", branch=number).fetchone()
    if row is None:
        raise CorruptRowError(
            f"{scope.key}: branch number {number}", "another branch starts in it, but it is not there"
        )
    return Node._make(row)


def append(
    connection: sqlite3.Connection,
    key: ConversationKey,
    rows: Sequence[Prepared],
    *,
    branch: str,
    expected_position: int | None,
    now_ms: int,
) -> tuple[LogEntry, ...]:
    """As `MessageLog.append`, for prepared rows. Appending nothing only checks the position."""
    if not rows:
        require_position(_end_of(connection, key, branch), expected_position)
        return ()
    scope = make_scope(connection, key, now_ms)
    head = make_head(scope, branch, now_ms)
    require_position(head.branch, expected_position)
    return add_rows(scope, head, rows, now_ms)


def _end_of(connection: sqlite3.Connection, key: ConversationKey, branch: str) -> Branch:
    scope = find_scope(connection, key)
    if branch == MAIN:
        head = find_head(scope, branch) if scope else None
        return head.branch if head else Branch()
    return require_head(require_scope(connection, key), branch).branch


def make_head(scope: Scope, name: str, now_ms: int) -> Head:
    """Return a branch; the main branch is added as needed. Raises NotFoundError for others."""
    found = find_head(scope, name) if name == MAIN else require_head(scope, name)
    return found or _add_branch(scope, Branch(), parent=None, base=None, now_ms=now_ms)


def _add_branch(scope: Scope, branch: Branch, *, parent: str | None, base: int | None, now_ms: int) -> Head:
    scope.run(
        "add_branch",
        name=branch.name,
        parent=parent,
        base=base,
        position=branch.position,
        seq=branch.seq,
        chain=chain_bytes(branch.chain),
        updated_at=now_ms,
    )
    return require_head(scope, branch.name)


def add_rows(scope: Scope, head: Head, rows: Sequence[Prepared], now_ms: int) -> tuple[LogEntry, ...]:
    """Write rows after a branch's head and move it. Raises DuplicateMessageError."""
    entries, end = place(rows, head.branch)
    stored = to_stored(entries, rows, head.branch.seq)
    try:
        scope.run_many("add_message", ((scope.number, head.node.number, *row[1:]) for row in stored))
    except sqlite3.IntegrityError as error:
        raise _why_refused(scope, head, stored, error) from error
    scope.run(
        "move_head",
        branch=head.node.number,
        position=end.position,
        seq=end.seq,
        chain=chain_bytes(end.chain),
        updated_at=now_ms,
    )
    return entries


def _why_refused(scope: Scope, head: Head, stored: Sequence[Stored], error: Exception) -> StoreError:
    """Return the first duplicate's error, looking past the rows that this transaction added before it was refused."""
    for row in stored:
        found = scope.run("place_of_id", message_id=row.message_id).fetchone()
        if found is None or found == (head.node.number, row.position):
            continue
        return DuplicateMessageError(row.message_id)
    return CorruptRowError(f"{scope.key}: branch {head.node.name!r}", f"rows lie beyond its recorded end ({error})")


def read(
    connection: sqlite3.Connection, key: ConversationKey, *, branch: str, after: int, limit: int | None
) -> tuple[LogEntry, ...]:
    """As `MessageLog.read`."""
    scope = require_scope(connection, key)
    return read_path(scope, require_head(scope, branch), after=after, limit=limit)


def read_path(scope: Scope, head: Head, *, after: int, limit: int | None) -> tuple[LogEntry, ...]:
    """Return rows of the path that ends at `head`. Raises CorruptRowError for one that is damaged or missing."""
    segments = window(head.node, lambda number: _lookup(scope, number), after=max(after, 0), limit=limit)
    return tuple(to_entry(scope.key, stored) for segment in segments for stored in _rows(scope, segment))


def _rows(scope: Scope, segment: Segment) -> Iterator[Stored]:
    """Yield a stretch's rows. Raises CorruptRowError where one is missing."""
    node, position = segment.node, segment.after
    for row in scope.run("rows", branch=node.number, after=segment.after, through=segment.through):
        position += 1
        stored = Stored(node.name, *row)
        if stored.position != position:
            break
        yield stored
    else:
        position += 1
    if position <= segment.through:
        raise CorruptRowError(f"{scope.key}: branch {node.name!r} position {position}", "it is missing")


def head(connection: sqlite3.Connection, key: ConversationKey, *, branch: str) -> Branch:
    """As `MessageLog.head`."""
    return require_head(require_scope(connection, key), branch).branch


def at_seq(connection: sqlite3.Connection, key: ConversationKey, seq: int, *, branch: str) -> LogEntry | None:
    """As `MessageLog.at_seq`."""
    scope = require_scope(connection, key)
    leaf = require_head(scope, branch).node
    if not 1 <= seq <= leaf.seq:
        return None
    owner = owner_of_seq(leaf, lambda number: _lookup(scope, number), seq)
    row = scope.run(
        "row_by_seq", branch=owner.number, seq=seq, fork_position=owner.fork_position, fork_seq=owner.fork_seq
    ).fetchone()
    if row is None or (row[1], row[2]) != (seq, 1):
        raise CorruptRowError(f"{key}: branch {owner.name!r} message number {seq}", "it is missing")
    return to_entry(key, Stored(owner.name, *row))


def find(connection: sqlite3.Connection, key: ConversationKey, message_ids: Iterable[str]) -> tuple[LogEntry, ...]:
    """As `MessageLog.find`."""
    scope = find_scope(connection, key)
    if scope is None:
        return ()
    found = (scope.run("row_by_id", message_id=message_id).fetchone() for message_id in message_ids)
    return tuple(to_entry(key, Stored._make(row)) for row in found if row is not None)


def fork(
    connection: sqlite3.Connection, key: ConversationKey, name: str, *, position: int, branch: str, now_ms: int
) -> Branch:
    """As `MessageLog.fork`."""
    scope = require_scope(connection, key)
    parent = require_head(scope, branch)
    taken = find_head(scope, name)
    if taken is not None:
        raise VersionConflict(f"branch {name!r}", 0, taken.branch.position)
    if not 0 <= position <= parent.branch.position:
        raise NotFoundError(
            "message", f"at position {position}", f"Branch {branch!r} ends at {parent.branch.position}."
        )
    start, base = fork_point(scope, parent, position)
    new = msgspec.structs.replace(start, name=name)
    return _add_branch(scope, new, parent=branch, base=base, now_ms=now_ms).branch


def fork_point(scope: Scope, parent: Head, position: int) -> tuple[Branch, int | None]:
    """Return a path's end after its first `position` rows, and the number of the branch that owns the last of them."""
    if position == 0:
        return Branch(), None
    owner = owner_of_position(parent.node, lambda number: _lookup(scope, number), position)
    (row,) = _rows(scope, Segment(owner, position - 1, position))
    return Branch(position=position, seq=row.seq, chain=_chain_of_branch(scope, owner.name, row.chain)), owner.number


def branches(connection: sqlite3.Connection, key: ConversationKey) -> tuple[Branch, ...]:
    """As `MessageLog.branches`."""
    found = tuple(head.branch for head in all_heads(require_scope(connection, key)))
    if not found:
        raise NotFoundError("conversation", str(key), "It has checkpoints or state, but no messages.")
    return found


def save_counts(connection: sqlite3.Connection, key: ConversationKey, counter: str, counts: Mapping[str, int]) -> None:
    """As `MessageLog.save_counts`; ids that are not there are left out."""
    scope = find_scope(connection, key)
    if scope is None:
        return
    for message_id, tokens in counts.items():
        row = scope.run("counts_by_id", message_id=message_id).fetchone()
        if row is not None:
            merged = _decode_counts(scope, message_id, row[1]) | {counter: tokens}
            scope.run("set_counts", id=row[0], counts=encode_counts(merged))


def _decode_counts(scope: Scope, message_id: str, stored: str | None) -> dict[str, int]:
    try:
        return decode_counts(stored)
    except msgspec.DecodeError as error:
        raise CorruptRowError(f"{scope.key}: counts of message {message_id!r}", str(error)) from error


def conversations(
    connection: sqlite3.Connection, *, tenant: str, user: str | None, after: ConversationKey | None, limit: int
) -> tuple[ConversationInfo, ...]:
    """As `MessageLog.conversations`."""
    start = listing_start(tenant, user, after)
    if start is None:
        return ()
    statement = "conversations_of_tenant" if user is None else "conversations_of_user"
    rows = run(
        connection, statement, tenant=tenant, user=user, from_user=start[0], from_id=start[1], limit=min(limit, LARGEST)
    ).fetchall()
    return tuple(_info(connection, tenant, *row) for row in rows)


def _info(
    connection: sqlite3.Connection, tenant: str, user: str, name: str, number: int, touched: int
) -> ConversationInfo:
    key = ConversationKey(tenant=tenant, user=user, conversation_id=name)
    sizes = Scope(connection, key, number).run("branch_sizes").fetchall()
    return ConversationInfo(
        key=key,
        branches=tuple(name for name, _, _ in sizes),
        rows=sum(rows for _, rows, _ in sizes),
        updated_at=max([touched, *(updated_at for _, _, updated_at in sizes)]),
    )


def purge(connection: sqlite3.Connection, key: ConversationKey) -> int:
    """As `MessageLog.purge`; a conversation that is not there has nothing to remove."""
    scope = find_scope(connection, key)
    if scope is None:
        return 0
    (count,) = scope.run("count_messages").fetchone()
    scope.run("purge")
    return int(count)
