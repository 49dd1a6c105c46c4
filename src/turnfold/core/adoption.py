"""The gate that a compaction passes before it replaces the old view: a tuple of reasons, empty means adopt (SPEC §8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from turnfold.core.budget import Budget
from turnfold.core.groups import pair_tools
from turnfold.core.plan import Plan, Trigger
from turnfold.core.reasons import Reason
from turnfold.messages.canonical import digest
from turnfold.messages.model import Message

MIN_SAVING = 0.05
"""A compaction under pressure must make the view smaller by at least this share."""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A compaction to be judged. Tokens are of whole requests, by the one counter.

    `verbatim` are the messages that must stand in `messages` as they are: system prompt, pins, incoming turn, an open
    turn's request. `summary` is None for a compaction by masks alone. `target` is for the whole request.
    """

    trigger: Trigger
    budget: Budget
    messages: tuple[Message, ...]
    tokens_before: int
    tokens_after: int
    verbatim: tuple[Message, ...] = ()
    summary: str | None = None
    masks_only: bool = False
    target: int | None = None
    excused: str | None = None


def refusals(proposal: Proposal) -> tuple[Reason, ...]:
    """Return why the proposal may not be adopted; empty when it may."""
    return (*_content(proposal), *_shape(proposal), *_size(proposal))


def _content(proposal: Proposal) -> Iterator[Reason]:
    if not proposal.masks_only and not (proposal.summary or "").strip():
        yield Reason(code="blank", detail="the summary has no text")


def _shape(proposal: Proposal) -> Iterator[Reason]:
    pairs = pair_tools(proposal.messages)
    if pairs.orphan_results or pairs.unanswered:
        yield Reason(code="tool_pairs", detail="a tool call and its result would be separated")
    present = {message.id: message for message in proposal.messages}
    for message in proposal.verbatim:
        shown = present.get(message.id)
        if shown is None or (shown is not message and digest(shown) != digest(message)):
            yield Reason(code="not_verbatim", detail=f"message {message.id!r} would not be shown as it is")


def _size(proposal: Proposal) -> Iterator[Reason]:
    before, after, budget = proposal.tokens_before, proposal.tokens_after, proposal.budget
    if after > budget.input_budget:
        yield Reason(code="over_budget", detail=f"{after} tokens, the input budget is {budget.input_budget}")
    if proposal.trigger in ("manual", "advance"):
        if after > before:
            yield Reason(code="larger", detail=f"{after} tokens, before {before}")
        return
    if proposal.target is not None and after > proposal.target and proposal.excused is None:
        yield Reason(code="over_target", detail=f"{after} tokens, the target is {proposal.target}")
    if after > before * (1 - MIN_SAVING):
        yield Reason(code="no_saving", detail=f"{before} to {after} tokens saves less than {MIN_SAVING:.0%}")


def request_target(plan: Plan, floor: int) -> int | None:
    """Return the plan's target for a whole request: its target for history and summary, plus the floor."""
    return None if plan.target is None else plan.target + floor


def codes(reasons: Sequence[Reason]) -> frozenset[str]:
    """Return the codes of some reasons."""
    return frozenset(reason.code for reason in reasons)
