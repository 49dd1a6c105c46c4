"""Whether a stored checkpoint may be used with a history, and why not (SPEC §9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from turnfold.core.checkpoint import FORMAT_VERSION, CheckpointRecord, Coverage
from turnfold.core.reasons import Reason
from turnfold.messages.canonical import chain_of, digest
from turnfold.messages.model import Message


class Validity(msgspec.Struct, frozen=True, kw_only=True):
    """`usable`, `unusable` with reasons, or `unverifiable`: nothing may be written in this request."""

    status: Literal["usable", "unusable", "unverifiable"]
    reasons: tuple[Reason, ...] = ()


USABLE = Validity(status="usable")


def _unusable(code: str, detail: str) -> Validity:
    return Validity(status="unusable", reasons=(Reason(code=code, detail=detail),))


def _unverifiable(code: str, detail: str) -> Validity:
    return Validity(status="unverifiable", reasons=(Reason(code=code, detail=detail),))


def validate_record(record: CheckpointRecord, *, fingerprint: str | None) -> Validity:
    """Check all that depends on neither history nor size: format, invalidation, semantic fingerprint.

    `fingerprint` None says that the configuration of now is not known.
    """
    checkpoint = record.checkpoint
    if checkpoint is None:
        detail = f"version {record.version} has format {record.format}; this release knows {FORMAT_VERSION}"
        return _unverifiable("unknown_format", detail)
    if record.invalidated is not None:
        return _unusable("invalidated", record.invalidated)
    if fingerprint is None:
        return _unverifiable("unknown_configuration", "the role's configuration of now is not known")
    if checkpoint.fingerprint != fingerprint:
        return _unusable("fingerprint", "the role, the prompt preset or the protocol is another one now")
    return USABLE


def validate_size(tokens: int, max_tokens: int) -> Validity:
    """Check a stored summary's tokens against what a summary may take now."""
    if tokens <= max_tokens:
        return USABLE
    return _unusable("summary_size", f"the summary takes {tokens} tokens, {max_tokens} are allowed")


def validate_stored(coverage: Coverage | None, chain_at_count: str | None) -> Validity:
    """Check a coverage against a stored branch: the chain at its last covered message decides.

    `chain_at_count` is the branch's chain at seq `coverage.count`, or None when the branch is shorter.
    """
    if coverage is None or coverage.chain == chain_at_count:
        return USABLE
    if chain_at_count is None:
        return _unusable("coverage_beyond_branch", f"it covers {coverage.count} messages, the branch has fewer")
    return _unusable("chain", f"the branch differs within the {coverage.count} covered messages")


KNOWN_CHANGES = frozenset({"fingerprint", "edited", "order", "count", "chain", "end_removed"})
"""Reasons that prove a change of history or configuration: such a checkpoint is invalidated before a rebuild."""


def is_known_change(validity: Validity) -> bool:
    """Whether the reasons prove that the checkpoint can never be true of this conversation again."""
    return validity.status == "unusable" and any(reason.code in KNOWN_CHANGES for reason in validity.reasons)


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """How a coverage meets the history that a request carries: the first `uncovered_from` messages are covered."""

    validity: Validity
    uncovered_from: int = 0


def connect_carried(
    coverage: Coverage | None, history: Sequence[Message], *, digest_of: Callable[[Message], str] = digest
) -> Connection:
    """Check a coverage against a carried history, which may be only the conversation's recent part.

    The last covered message must be carried; every carried message recorded in the tail must stand where it stood, with
    its digest; when the whole coverage is carried, its first message, count and chain must be equal too. The history holds
    rows of kind `message` only; `digest_of` may be a `digest` that remembers.
    """
    if coverage is None:
        return Connection(validity=USABLE)
    positions = {message.id: index for index, message in enumerate(history)}
    end = positions.get(coverage.last_id)
    if end is None:
        return Connection(validity=_end_problem(coverage, positions))
    covered = history[: end + 1]
    problem = _tail_problem(coverage, covered, digest_of) or _start_problem(coverage, covered, positions, digest_of)
    return Connection(validity=problem or USABLE, uncovered_from=end + 1)


def _end_problem(coverage: Coverage, positions: Mapping[str, int]) -> Validity:
    """Messages next to the missing end are carried: it was removed. None of them is: the history jumped past it."""
    if any(message_id in positions for message_id, _ in coverage.tail):
        return _unusable("end_removed", f"the last covered message {coverage.last_id!r} was removed")
    return _unusable("end_missing", f"the last covered message {coverage.last_id!r} is not carried")


def _tail_problem(
    coverage: Coverage, covered: Sequence[Message], digest_of: Callable[[Message], str]
) -> Validity | None:
    """A carried history is one contiguous run, so walking back from the end must meet the recorded tail in step."""
    for (message_id, recorded), message in zip(reversed(coverage.tail), reversed(covered), strict=False):
        if message.id != message_id:
            return _unusable("order", f"message {message.id!r} stands where {message_id!r} was covered")
        if digest_of(message) != recorded:
            return _unusable("edited", f"covered message {message_id!r} was changed")
    return None


def _start_problem(
    coverage: Coverage,
    covered: Sequence[Message],
    positions: Mapping[str, int],
    digest_of: Callable[[Message], str],
) -> Validity | None:
    start = len(covered) - coverage.count
    if start < 0:
        if coverage.first_id in positions:
            return _unusable("count", f"fewer than the {coverage.count} covered messages are left between their ends")
        return None
    if covered[start].id != coverage.first_id:
        return _unusable("count", f"{coverage.count} covered messages no longer start at {coverage.first_id!r}")
    if start > 0:
        return _unusable("earlier_history", f"{start} messages from before the coverage are carried now")
    if chain_of(covered, digest_of=digest_of) != coverage.chain:
        return _unusable("chain", "the covered messages were changed")
    return None
