"""What a compaction decided, and what `prepare` hands to its caller."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from turnfold.core.breakers import Verdict
from turnfold.core.budget import Budget
from turnfold.core.checkpoint import Checkpoint
from turnfold.core.plan import Plan, Trigger
from turnfold.core.reasons import Reason
from turnfold.messages.model import Message, Tool, Usage
from turnfold.ports import TokenCounter

Outcome: TypeAlias = Literal["unchanged", "reused", "compacted", "trimmed", "shadow"]
Persistence: TypeAlias = Literal["not_needed", "saved", "failed", "conflict", "unknown", "not_allowed"]


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The view to send and how it came about; nothing is stored yet.

    Messages and message tokens are those in view beside the fixed prompt and tools. `checkpoint` is the new one to be
    saved, None when none was adopted; `summary` and `restored` are its rows for the log. `verdict` is how the summarizer
    did, for the breakers; it says nothing of the fallback.
    """

    messages: tuple[Message, ...]
    tokens: int
    tokens_before: int
    messages_before: int
    messages_after: int
    message_tokens_before: int
    message_tokens_after: int
    outcome: Outcome
    trigger: Trigger | None = None
    plan: Plan | None = None
    checkpoint: Checkpoint | None = None
    summary: Message | None = None
    restored: tuple[Message, ...] = ()
    reasons: tuple[Reason, ...] = ()
    calls: int = 0
    candidates: int = 0
    milliseconds: int = 0
    usage: Usage | None = None
    verdict: Verdict = "none"


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A request that fits, ready to be sent.

    Tokens are of the whole request under `counter` (`exact` says whether that is the model's own). `outcome` tells what
    this turn sees, `persistence` whether later turns will: two facts, never one.
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tokens: int
    tokens_before: int
    messages_before: int
    messages_after: int
    message_tokens_before: int
    message_tokens_after: int
    budget: Budget
    counter: str
    exact: bool
    outcome: Outcome
    persistence: Persistence
    trigger: Trigger | None = None
    version: int | None = None
    reasons: tuple[Reason, ...] = ()
    calls: int = 0
    candidates: int = 0
    milliseconds: int = 0
    usage: Usage | None = None
    plan: Plan | None = None
    summary: str | None = None


def prepared_from(
    decision: Decision,
    *,
    tools: tuple[Tool, ...],
    budget: Budget,
    counter: TokenCounter,
    persistence: Persistence,
    version: int | None,
    summary: str | None,
    reasons: tuple[Reason, ...],
) -> Prepared:
    """Return the result of a decision. `version` and `summary` are of the checkpoint that later turns will find."""
    return Prepared(
        messages=decision.messages,
        tools=tools,
        tokens=decision.tokens,
        tokens_before=decision.tokens_before,
        messages_before=decision.messages_before,
        messages_after=decision.messages_after,
        message_tokens_before=decision.message_tokens_before,
        message_tokens_after=decision.message_tokens_after,
        budget=budget,
        counter=counter.name,
        exact=counter.exact,
        outcome=decision.outcome,
        persistence=persistence,
        trigger=decision.trigger,
        version=version,
        reasons=reasons,
        calls=decision.calls,
        candidates=decision.candidates,
        milliseconds=decision.milliseconds,
        usage=decision.usage,
        plan=decision.plan,
        summary=summary,
    )
