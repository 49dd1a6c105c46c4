"""Small values that the store suites write: messages, checkpoints and keys with little to say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from turnfold.core.checkpoint import Audit, Checkpoint, CheckpointKey, extend_coverage
from turnfold.messages.log import ConversationKey, LogEntry
from turnfold.messages.model import Kind, Message, text_message

KEY = ConversationKey(tenant="acme", user="ann", conversation_id="c1")
LINE = CheckpointKey(tenant="acme", user="ann", conversation_id="c1")


def said(*ids: str, kind: Kind = "message") -> tuple[Message, ...]:
    """Return one message for each id, whose text names it."""
    return tuple(text_message(each, "user", f"this is {each}", kind=kind) for each in ids)


def numbered(prefix: str, count: int) -> tuple[Message, ...]:
    """Return messages `prefix1`, `prefix2`..."""
    return said(*(f"{prefix}{number}" for number in range(1, count + 1)))


def ids(entries: Iterable[LogEntry]) -> list[str]:
    """Return the messages' ids in order."""
    return [entry.message.id for entry in entries]


def checkpoint(version: int, covered: Sequence[Message] = (), *, summary: str = "a summary") -> Checkpoint:
    """Return a checkpoint over `covered`, which must begin with the log's first message."""
    return Checkpoint(
        version=version,
        audit=Audit(trigger="manual", mode="all"),
        created_at=1_700_000_000_000,
        fingerprint="f",
        parent_version=version - 1 or None,
        summary=summary,
        coverage=extend_coverage(None, covered),
    )
