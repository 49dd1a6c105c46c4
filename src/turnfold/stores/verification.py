"""What `verify` checks, over rows that any store hands in: positions, seqs, chains, heads, checkpoints. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from turnfold.core.checkpoint import CheckpointKey, CheckpointRecord
from turnfold.errors import ChainError
from turnfold.messages.canonical import digest, extend_chain
from turnfold.messages.log import Branch, ConversationKey, VerifyReport
from turnfold.stores.rows import Stored, row_name, to_entry


class Findings(NamedTuple):
    """What was read of one conversation, and its first difference as a sentence (None for none)."""

    messages: int
    checkpoints: int
    problem: str | None


def report(findings: Iterable[Findings], other: Sequence[str] = ()) -> VerifyReport:
    """Sum up a report; `other` holds differences that belong to no conversation."""
    found = tuple(findings)
    return VerifyReport(
        conversations=len(found),
        messages=sum(each.messages for each in found),
        checkpoints=sum(each.checkpoints for each in found),
        problems=(*other, *(each.problem for each in found if each.problem is not None)),
    )


def check_branch(key: ConversationKey, start: Branch, fork_seq: int, rows: Iterable[Stored], head: Branch) -> int:
    """Re-derive a branch's own rows from where it forked (`start`) to its recorded `head`; return their number.

    `fork_seq` is what the branch recorded of its start.

    Raises CorruptRowError for a row that cannot be decoded, ChainError naming the first difference otherwise.
    """
    position, seq, chain = start.position, start.seq, start.chain
    _require(fork_seq == seq, f"{key}: the fork of branch {head.name!r}, recorded at seq {fork_seq}, found at {seq}")
    for row in rows:
        position += 1
        _require(row.position == position, f"{key}: branch {head.name!r} position {position}, where no row is")
        entry, where = to_entry(key, row), row_name(key, row)
        if entry.message.kind == "message":
            seq, chain = seq + 1, extend_chain(chain, digest(entry.message))
        _require(row.seq == seq, f"{where}, whose seq is {row.seq}, not {seq}")
        _require(entry.chain == chain, where)
    _require(
        (head.position, head.seq, head.chain) == (position, seq, chain),
        f"{key}: the end of branch {head.name!r}, recorded as position {head.position} seq {head.seq}, "
        f"found at position {position} seq {seq}",
    )
    return position - start.position


def check_checkpoints(
    key: CheckpointKey, records: Sequence[CheckpointRecord], find: Callable[[str], tuple[int, str] | None]
) -> None:
    """Check one line of checkpoints, oldest first: no version missing, and each coverage's chain is the log's.

    `find` gives (seq, chain) of a stored message; a coverage whose last message is not stored belongs to a history
    that requests carry, and cannot be checked here. Raises ChainError naming the first difference.
    """
    for number, record in enumerate(records, 1):
        _require(record.version == number, f"checkpoint {key} version {number}, which is missing")
        coverage = record.checkpoint.coverage if record.checkpoint else None
        if coverage is None or record.invalidated is not None:
            continue
        stored = find(coverage.last_id)
        _require(
            stored is None or stored == (coverage.count, coverage.chain),
            f"checkpoint {key} version {number}, whose coverage up to message {coverage.last_id!r} is not the log's",
        )


def _require(holds: bool, where: str) -> None:
    if not holds:
        raise ChainError(where)
