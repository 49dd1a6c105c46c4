"""What providers' reported usage says about our counts: the agent seed's anchored estimate, and a correction factor."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from turnfold.messages.model import Message

VOID_STOPS = frozenset({"aborted", "error", "cancelled"})
PREPARED_TOKENS = "prepared_tokens"
"""Metadata key of a reply: our count of the request that it answers."""

FACTOR_LIMITS = (0.5, 4.0)
"""A correction outside these is a report about another request, not about our counting; it is void."""


class AnchoredEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens in context: those that the newest valid usage reports plus our counts of what came after it."""

    tokens: int
    usage_tokens: int
    trailing_tokens: int
    last_usage_index: int | None


def anchored_estimate(messages: Sequence[Message], tokens: Sequence[int]) -> AnchoredEstimate:
    """Return the estimate of the agent seed: its newest usage, unless void, plus the counts of later messages.

    Void is usage of an aborted or failed reply, all zero, or from at or before the newest summary.
    """
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.kind == "summary":
            break
        if reported := _valid_usage(message):
            trailing = sum(tokens[index + 1 :])
            return AnchoredEstimate(
                tokens=reported + trailing, usage_tokens=reported, trailing_tokens=trailing, last_usage_index=index
            )
    total = sum(tokens)
    return AnchoredEstimate(tokens=total, usage_tokens=0, trailing_tokens=total, last_usage_index=None)


def _valid_usage(message: Message) -> int:
    usage = message.usage
    if message.role != "assistant" or usage is None or message.stop_reason in VOID_STOPS:
        return 0
    return usage.total or usage.prompt + usage.output


def correction_factor(message: Message, model: str | None) -> float | None:
    """Return the provider's prompt tokens over ours, from a reply of `model` that carries both; None when it says nothing.

    The newest such reply after the current checkpoint counts; usage from before it was about another view.
    """
    ours, usage = message.metadata.get(PREPARED_TOKENS), message.usage
    if not isinstance(ours, int) or ours <= 0 or message.model != model or usage is None:
        return None
    if not _valid_usage(message) or usage.prompt <= 0:
        return None
    low, high = FACTOR_LIMITS
    factor = usage.prompt / ours
    return factor if low <= factor <= high else None
