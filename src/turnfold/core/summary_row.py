"""The message that shows a checkpoint's summary, the same bytes whenever it is made, and how to tell it from others."""

from __future__ import annotations

from turnfold.core.checkpoint import Audit, Checkpoint, Coverage
from turnfold.core.envelope import CompactionStats, alert_text, compaction_metadata, plain_block
from turnfold.core.policy import Policy
from turnfold.messages.model import Message, Text

CHECKPOINT = "checkpoint"
"""Metadata key of turnfold's own summary rows: the checkpoint's version. Imported summaries do not have it."""


def summary_message(checkpoint: Checkpoint, policy: Policy) -> Message:
    """Return the summary as a message of kind `summary`; everything in it comes from the checkpoint and the policy."""
    summary = checkpoint.summary or ""
    stats = _stats(checkpoint.audit)
    if policy.summary_form == "plain":
        text = plain_block(summary)
    else:
        text = alert_text(
            summary,
            "all" if checkpoint.summary_mode == "all" else "sliding_window",
            time_ms=checkpoint.created_at,
            stats=stats,
            stats_in_text=policy.stats_in_text,
            hidden=checkpoint.coverage.count if checkpoint.coverage else None,
        )
    return Message(
        id=checkpoint.summary_message_id or f"summary-{checkpoint.version}",
        role=policy.summary_role,
        kind="summary",
        parts=(Text(text=text),),
        created_at=checkpoint.created_at,
        metadata={"compaction": compaction_metadata(summary, stats), CHECKPOINT: checkpoint.version},
    )


LONG_COUNT, LONG_TIME = 100_000, 1_777_777_777_777
"""A number of messages and a time (ms) that take as many tokens in an envelope as any."""


def envelope(policy: Policy, audit: Audit) -> Message:
    """Return the message around a summary that says nothing: what it takes, no summary can say."""
    coverage = Coverage(first_id="", last_id="", count=LONG_COUNT, chain="")
    empty = Checkpoint(version=1, created_at=LONG_TIME, fingerprint="", coverage=coverage, audit=audit)
    return summary_message(empty, policy)


def is_own_summary(message: Message) -> bool:
    """Whether the row was written beside one of our checkpoints; the view shows the checkpoint's summary instead."""
    return message.kind == "summary" and CHECKPOINT in message.metadata


def _stats(audit: Audit) -> CompactionStats:
    return CompactionStats(
        trigger=audit.trigger,
        context_tokens_before=audit.tokens_before or None,
        context_tokens_after=audit.tokens_after or None,
        context_window=audit.context_window or None,
        messages_count_before=audit.messages_before or None,
        messages_count_after=audit.messages_after or None,
    )
