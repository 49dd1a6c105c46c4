"""The checkpoint: a summary and the exact stretch of the log that it stands for, as a value that can be stored.

Whether a checkpoint may be used with a history is decided in `validation`; what the model then sees in `view`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from turnfold.core.system_prompt import CompiledPrompt
from turnfold.messages.canonical import GENESIS, chain_of, digest
from turnfold.messages.log import ConversationKey
from turnfold.messages.model import Message, Usage

FORMAT_VERSION = 1
"""Raised when an older release could misread a newer checkpoint."""

TAIL_LENGTH = 64
"""How many covered messages are recorded with their digests, for histories that carry only their recent part (SPEC §9)."""


class CheckpointKey(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Names one line of checkpoints: versions 1, 2, 3... of one scenario in one conversation."""

    conversation_id: str
    tenant: str = ""
    user: str = ""
    scenario: str = "session"

    @property
    def conversation(self) -> ConversationKey:
        """The conversation that the checkpoints belong to."""
        return ConversationKey(tenant=self.tenant, user=self.user, conversation_id=self.conversation_id)

    def __str__(self) -> str:
        return f"{self.conversation}#{self.scenario}"


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """The messages that a summary stands for: a prefix, named by its ends, its length and its chain.

    `tail` holds (id, digest) of its last `TAIL_LENGTH` messages.
    """

    first_id: str
    last_id: str
    count: int
    chain: str
    tail: tuple[tuple[str, str], ...] = ()


def extend_coverage(coverage: Coverage | None, messages: Sequence[Message]) -> Coverage | None:
    """Return `coverage` grown by `messages` (in order, right after it). Kinds outside the chain do not count."""
    chained = [message for message in messages if message.kind == "message"]
    if not chained:
        return coverage
    recent = tuple((message.id, digest(message)) for message in chained[-TAIL_LENGTH:])
    return Coverage(
        first_id=coverage.first_id if coverage else chained[0].id,
        last_id=chained[-1].id,
        count=(coverage.count if coverage else 0) + len(chained),
        chain=chain_of(chained, coverage.chain if coverage else GENESIS),
        tail=((coverage.tail if coverage else ()) + recent)[-TAIL_LENGTH:],
    )


class Mask(msgspec.Struct, frozen=True, kw_only=True):
    """One tool result shown as a placeholder: the result of `call_id` in message `message_id`. The log keeps it whole."""

    message_id: str
    call_id: str
    placeholder: str


class Retention(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many identifiers and standing instructions of the covered messages the summary holds, and which it does not."""

    identifiers_found: int = 0
    identifiers_kept: int = 0
    identifiers_added: int = 0
    instructions_found: int = 0
    instructions_kept: int = 0
    omitted: tuple[str, ...] = ()


class Audit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a checkpoint came to be. Tokens are of the whole request, under `counter`; messages are those of the history in
    view, the summary's included; `not_shown` names what is covered but was never shown to the summarizer.
    """

    trigger: str
    mode: str
    summarizer: str = ""
    model: str = ""
    prompt_hash: str = ""
    counter: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    context_window: int = 0
    messages_before: int = 0
    messages_after: int = 0
    calls: int = 0
    candidates: int = 0
    milliseconds: int = 0
    usage: Usage | None = None
    retention: Retention | None = None
    not_shown: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stored decision about what the model sees.

    `summary` is the raw summary (None when only masks were set before any summary) and `summary_mode` the plan that it was
    written for, `structured` its parsed form for
    `structured_json`. `pins` are the covered pinned ids shown verbatim, `open_request_id` the covered request of the turn
    that was open, `folded` the ids of rows outside the chain that are not shown
    any more: memory updates and reminders that the recompiled `prompt` made obsolete, and covered foreign summaries.
    """

    version: int
    audit: Audit
    created_at: int
    fingerprint: str
    format: int = FORMAT_VERSION
    parent_version: int | None = None
    summary: str | None = None
    summary_mode: str = "sliding_window"
    summary_message_id: str | None = None
    structured: dict[str, Any] | None = None
    coverage: Coverage | None = None
    masks: tuple[Mask, ...] = ()
    pins: tuple[str, ...] = ()
    open_request_id: str | None = None
    folded: tuple[str, ...] = ()
    prompt: CompiledPrompt | None = None


class NextCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What a new checkpoint will be called: its version, the id of its summary's row, its fingerprint, and when (UTC, ms)."""

    version: int
    summary_id: str
    fingerprint: str
    created_at: int


class CheckpointRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint as a store gives it back. `checkpoint` is None when `format` is one that this release does not know;
    `invalidated` is the reason it was marked unusable for everyone.
    """

    version: int
    format: int
    checkpoint: Checkpoint | None
    invalidated: str | None = None
