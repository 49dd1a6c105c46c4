"""The log's operations on a PostgreSQL connection. Where one statement does not do it, the caller opens the transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from turnfold.core.checkpoint import CheckpointKey
from turnfold.errors import CorruptRowError, DuplicateMessageError, NotFoundError, StoreError, VersionConflict
from turnfold.messages.log import MAIN, Branch, ConversationInfo, ConversationKey, LogEntry
from turnfold.ports import Changes
from turnfold.stores.paths import Head, Lookup, Node, owner_of_position, owner_of_seq, window
from turnfold.stores.postgres_database import Connection, Row, UniqueViolation, key_values
from turnfold.stores.rows import (
    Prepared,
    Stored,
    chain_bytes,
    chain_text,
    decode_counts,
    encode_counts,
    listing_start,
    place,
    to_entry,
    to_stored,
)

LARGEST: Final = 2**63 - 1
"""PostgreSQL's largest bigint; a larger bound means the same."""

HEAD_COLUMNS: Final = 9


def to_head(key: ConversationKey, row: Row) -> Head:
    """Return the branch of a row of `branches`. Raises CorruptRowError."""
    number, name, base, fork_position, fork_seq, position, seq, parent, chain = row
    name = name.decode()
    node = Node(number, name, base, fork_position, fork_seq, position, seq)
    try:
        branch = Branch(
            name=name,
            parent=None if parent is None else parent.decode(),
            fork_position=fork_position,
            position=position,
            seq=seq,
            chain=chain_text(chain),
        )
    except ValueError as error:
        raise CorruptRowError(f"{key}: branch {name!r}", str(error)) from error
    return Head(node, branch)


def to_row(branch: str, row: Row) -> Stored:
    """Return a row of `messages` (position to counts) of a branch."""
    position, seq, chained, chain, message_id, body, counts = row
    return Stored(branch, position, seq, chained, chain, message_id.decode(), body, counts)


async def find_head(db: Connection, key: ConversationKey, name: str, *, lock: bool = False) -> Head | None:
    """Return a branch, None for none; with `lock` nobody appends to it before the transaction ends."""
    statement = "lock_branch" if lock else "branch_by_name"
    row = await db.row(statement, {**key_values(key), "name": _bytes(name)})
    return None if row is None else to_head(key, row)


async def require_conversation(db: Connection, key: ConversationKey) -> None:
    """Raise NotFoundError when the conversation is not there."""
    if await db.row("conversation", key_values(key)) is None:
        raise NotFoundError("conversation", str(key))


async def missing_branch(db: Connection, key: ConversationKey, name: str) -> NotFoundError:
    """Return why a branch was not found: the conversation is not there either, or only the branch."""
    if await db.row("conversation", key_values(key)) is None:
        return NotFoundError("conversation", str(key))
    return NotFoundError("branch", name, f"It is not in conversation {str(key)!r}.")


async def head(db: Connection, key: ConversationKey, *, branch: str) -> Head:
    """Return a branch. Raises NotFoundError."""
    found = await find_head(db, key, branch)
    if found is None:
        raise await missing_branch(db, key, branch)
    return found


async def end_of(db: Connection, key: ConversationKey, branch: str) -> Branch:
    """Return where a branch ends; a main branch that is yet to be ends at its beginning."""
    if branch != MAIN:
        return (await head(db, key, branch=branch)).branch
    found = await find_head(db, key, branch)
    return found.branch if found else Branch()


async def make_head(db: Connection, key: ConversationKey, name: str, now_ms: int) -> Head:
    """Return a branch, locked until the transaction ends; the conversation and its main branch are made as needed.

    Raises NotFoundError for other branches.
    """
    found = await find_head(db, key, name, lock=True)
    if found is None and name == MAIN:
        start = {"name": MAIN.encode(), "chain": chain_bytes(Branch().chain), "updated_at": now_ms}
        await db.run("start", {**key_values(key), **start})
        found = await find_head(db, key, name, lock=True)
    if found is None:
        raise await missing_branch(db, key, name)
    return found


async def add_rows(
    db: Connection, key: ConversationKey, head: Head, rows: Sequence[Prepared], now_ms: int
) -> tuple[tuple[LogEntry, ...], Head] | None:
    """Write rows after a head if it is still the branch's, and return them with the new head; None when it is another.

    Raises DuplicateMessageError.
    """
    entries, end = place(rows, head.branch)
    stored = to_stored(entries, rows, head.branch.seq)
    values = {
        **key_values(key),
        "branch": head.node.number,
        "old_position": head.branch.position,
        "old_chain": chain_bytes(head.branch.chain),
        "position": end.position,
        "seq": end.seq,
        "chain": chain_bytes(end.chain),
        "updated_at": now_ms,
        **_columns(stored),
    }
    try:
        moved = await db.row("append", values)
    except UniqueViolation as error:
        raise await _why_refused(db, key, head, stored, error) from error
    if moved is None:
        return None
    return entries, Head(head.node._replace(position=end.position, seq=end.seq), end)


def _columns(stored: Sequence[Stored]) -> dict[str, list[Any]]:
    return {
        "positions": [row.position for row in stored],
        "seqs": [row.seq for row in stored],
        "chained": [row.chained for row in stored],
        "chains": [row.chain for row in stored],
        "ids": [row.message_id.encode() for row in stored],
        "bodies": [row.body for row in stored],
        "counts": [row.counts for row in stored],
    }


async def _why_refused(
    db: Connection, key: ConversationKey, head: Head, stored: Sequence[Stored], error: UniqueViolation
) -> StoreError:
    """Return the first duplicate's error. Inside a transaction the refused statement ended it, so the row is not looked for."""
    ids = [row.message_id.encode() for row in stored]
    if db.is_broken:
        return DuplicateMessageError(_named_in(error, ids))
    found = {row[0] for row in await db.rows("places_of_ids", {**key_values(key), "ids": ids})}
    for row in stored:
        if row.message_id.encode() in found:
            return DuplicateMessageError(row.message_id)
    return CorruptRowError(f"{key}: branch {head.node.name!r}", f"rows lie beyond its recorded end ({error})")


def _named_in(error: UniqueViolation, ids: Sequence[bytes]) -> str:
    """Return the id that the server's message names, in hexadecimal; the first of them when it names none."""
    detail = error.diag.message_detail or ""
    named = (message_id for message_id in ids if f"\\x{message_id.hex()})" in detail)
    return next(named, ids[0]).decode()


class Path(msgspec.Struct, frozen=True):
    """A branch's path as one statement saw it: its branches by number, leaf first, and the rows that were asked for."""

    head_version: int
    heads: tuple[Head, ...]
    rows: Mapping[int, Sequence[Stored]]


async def look(
    db: Connection, key: ConversationKey | CheckpointKey, *, branch: str, after: int, limit: int | None
) -> Path | None:
    """Return a branch's path with its rows after a position, None for no such branch."""
    through = LARGEST if limit is None else min(max(after, 0) + limit, LARGEST)
    values = {"scenario": b"", **key_values(key), "name": _bytes(branch), "after": after, "through": through}
    heads: dict[int, Head] = {}
    rows: dict[int, list[Stored]] = {}
    version = 0
    conversation = key.conversation if isinstance(key, CheckpointKey) else key
    for row in await db.rows("path_rows", values):
        version, number = row[0], row[1]
        if number not in heads:
            heads[number] = to_head(conversation, row[1 : 1 + HEAD_COLUMNS])
            rows[number] = []
        message = row[1 + HEAD_COLUMNS :]
        if message[0] is not None:
            rows[number].append(to_row(heads[number].node.name, message))
    return Path(version, tuple(reversed(heads.values())), rows) if heads else None


def entries_of(key: ConversationKey, path: Path, *, after: int, limit: int | None) -> tuple[LogEntry, ...]:
    """Return a path's rows in order. Raises CorruptRowError for one that is damaged or missing."""
    leaf = path.heads[0].node
    segments = window(leaf, lookup_in(key, path.heads), after=after, limit=limit)
    return tuple(
        to_entry(key, stored)
        for segment in segments
        for stored in _contiguous(
            key, segment.node.name, path.rows[segment.node.number], segment.after, segment.through
        )
    )


def _contiguous(
    key: ConversationKey, branch: str, rows: Sequence[Stored], after: int, through: int
) -> Iterator[Stored]:
    position = after
    for row in rows:
        if row.position != position + 1:
            break
        position += 1
        yield row
    if position < through:
        raise CorruptRowError(f"{key}: branch {branch!r} position {position + 1}", "it is missing")


def lookup_in(key: ConversationKey, heads: Sequence[Head]) -> Lookup:
    """Return how a walk finds a branch by its number. It raises CorruptRowError for one that is not there."""
    nodes = {head.node.number: head.node for head in heads}

    def lookup(number: int) -> Node:
        if number not in nodes:
            where = f"{key}: branch number {number}"
            raise CorruptRowError(where, "another branch starts in it, but it is not there below it")
        return nodes[number]

    return lookup


async def read(
    db: Connection, key: ConversationKey, *, branch: str, after: int, limit: int | None
) -> tuple[LogEntry, ...]:
    """As `MessageLog.read`."""
    after = min(max(after, 0), LARGEST)
    path = await look(db, key, branch=branch, after=after, limit=limit)
    if path is None:
        raise await missing_branch(db, key, branch)
    return entries_of(key, path, after=after, limit=limit)


async def changes(db: Connection, key: CheckpointKey, *, branch: str, after: int) -> Changes:
    """As `Store.changes`."""
    after = min(max(after, 0), LARGEST)
    path = await look(db, key, branch=branch, after=after, limit=None)
    if path is None:
        if branch != MAIN:
            raise await missing_branch(db, key.conversation, branch)
        row = await db.row("checkpoint_head", key_values(key))
        return Changes(head_version=row[0] if row else 0)
    entries = entries_of(key.conversation, path, after=after, limit=None)
    return Changes(head_version=path.head_version, position=path.heads[0].branch.position, entries=entries)


async def _walk(db: Connection, key: ConversationKey, branch: str) -> tuple[Head, ...]:
    """Return a branch and those below it, leaf first. Raises NotFoundError."""
    rows = await db.rows("path", {**key_values(key), "name": _bytes(branch)})
    if not rows:
        raise await missing_branch(db, key, branch)
    return tuple(to_head(key, row) for row in rows)


async def at_seq(db: Connection, key: ConversationKey, seq: int, *, branch: str) -> LogEntry | None:
    """As `MessageLog.at_seq`."""
    heads = await _walk(db, key, branch)
    leaf = heads[0].node
    if not 1 <= seq <= leaf.seq:
        return None
    owner = owner_of_seq(leaf, lookup_in(key, heads), seq)
    place = {"branch": owner.number, "number": seq, "offset": owner.fork_position - owner.fork_seq}
    row = await db.row("row_by_seq", {**key_values(key), **place})
    if row is None or (row[1], row[2]) != (seq, True):
        raise CorruptRowError(f"{key}: branch {owner.name!r} message number {seq}", "it is missing")
    return to_entry(key, to_row(owner.name, row))


async def find(db: Connection, key: ConversationKey, message_ids: Sequence[str]) -> tuple[LogEntry, ...]:
    """As `MessageLog.find`."""
    rows = await db.rows("rows_by_ids", {**key_values(key), "ids": [_bytes(name) for name in message_ids]})
    found = {stored.message_id: stored for stored in (to_row(row[0].decode(), row[1:]) for row in rows)}
    return tuple(to_entry(key, found[name]) for name in message_ids if name in found)


async def fork(db: Connection, key: ConversationKey, name: str, *, position: int, branch: str, now_ms: int) -> Branch:
    """As `MessageLog.fork`, inside a transaction."""
    if await db.row("lock_conversation", key_values(key)) is None:
        raise NotFoundError("conversation", str(key))
    heads = await _walk(db, key, branch)
    taken = await find_head(db, key, name)
    if taken is not None:
        raise VersionConflict(f"branch {name!r}", 0, taken.branch.position)
    if not 0 <= position <= heads[0].branch.position:
        raise NotFoundError(
            "message", f"at position {position}", f"Branch {branch!r} ends at {heads[0].branch.position}."
        )
    start, base = await fork_point(db, key, heads, position)
    values = {
        "name": name.encode(),
        "parent": branch.encode(),
        "base": base,
        "position": start.position,
        "seq": start.seq,
        "chain": chain_bytes(start.chain),
        "updated_at": now_ms,
    }
    await db.run("add_branch", {**key_values(key), **values})
    return msgspec.structs.replace(start, name=name, parent=branch, fork_position=start.position)


async def fork_point(
    db: Connection, key: ConversationKey, heads: Sequence[Head], position: int
) -> tuple[Branch, int | None]:
    """Return a path's end after its first `position` rows, and the number of the branch that owns the last of them."""
    if position == 0:
        return Branch(), None
    owner = owner_of_position(heads[0].node, lookup_in(key, heads), position)
    row = await db.row("row_at", {**key_values(key), "branch": owner.number, "position": position})
    if row is None:
        raise CorruptRowError(f"{key}: branch {owner.name!r} position {position}", "it is missing")
    stored = to_row(owner.name, row)
    try:
        chain = chain_text(stored.chain)
    except ValueError as error:
        raise CorruptRowError(f"{key}: branch {owner.name!r} position {position}", str(error)) from error
    return Branch(position=position, seq=stored.seq, chain=chain), owner.number


async def branches(db: Connection, key: ConversationKey) -> tuple[Branch, ...]:
    """As `MessageLog.branches`."""
    found = tuple(to_head(key, row).branch for row in await db.rows("branches", key_values(key)))
    if not found:
        await require_conversation(db, key)
        raise NotFoundError("conversation", str(key), "It has checkpoints or state, but no messages.")
    return found


async def save_counts(db: Connection, key: ConversationKey, counter: str, counts: Mapping[str, int]) -> None:
    """As `MessageLog.save_counts`, inside a transaction; ids that are not there are left out."""
    ids = [_bytes(message_id) for message_id in counts]
    merged: dict[bytes, str | None] = {}
    for raw, stored in await db.rows("lock_counts", {**key_values(key), "ids": ids}):
        message_id = raw.decode()
        try:
            merged[raw] = encode_counts(decode_counts(stored) | {counter: counts[message_id]})
        except msgspec.DecodeError as error:
            raise CorruptRowError(f"{key}: counts of message {message_id!r}", str(error)) from error
    if merged:
        await db.run("set_counts", {**key_values(key), "ids": list(merged), "counts": list(merged.values())})


async def conversations(
    db: Connection, *, tenant: str, user: str | None, after: ConversationKey | None, limit: int
) -> tuple[ConversationInfo, ...]:
    """As `MessageLog.conversations`."""
    start = listing_start(tenant, user, after)
    if start is None:
        return ()
    values = {
        "tenant": _bytes(tenant),
        "user": None if user is None else _bytes(user),
        "from_user": _bytes(start[0]),
        "from_id": _bytes(start[1]),
        "limit": min(limit, LARGEST),
    }
    return tuple(
        ConversationInfo(
            key=ConversationKey(tenant=tenant, user=user_id.decode(), conversation_id=name.decode()),
            branches=tuple(branch.decode() for branch in names),
            rows=rows,
            updated_at=max(touched, appended),
        )
        for user_id, name, touched, names, rows, appended in await db.rows("conversations", values)
    )


async def purge(db: Connection, key: ConversationKey) -> int:
    """As `MessageLog.purge`, inside a transaction."""
    values = key_values(key)
    await db.row("lock_conversation", values)
    await db.run("purge_branches", values)
    count = await db.run("purge_messages", values)
    for statement in ("purge_checkpoints", "purge_state", "purge_conversation"):
        await db.run(statement, values)
    return count


def _bytes(name: str) -> bytes:
    """Return a name that is looked for; one that is not valid Unicode is nowhere, so it may match nothing."""
    return name.encode("utf-8", "surrogatepass")
