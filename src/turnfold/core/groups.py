"""What belongs together in a history: tool calls with their results, turns, closed groups; and so where it may be cut.

All functions take the messages in order and work in one pass; positions are indices into that sequence.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from turnfold.errors import GroupsError
from turnfold.messages.model import Message

UNFINISHED_STOPS = frozenset({"aborted", "error", "cancelled", "length", "max_tokens", "incomplete"})
"""Stop reasons after which an assistant message is not a final answer."""


class ToolPairs(msgspec.Struct, frozen=True, kw_only=True):
    """How calls and results pair up. `spans` are (call's message, last result's message) of answered calls.

    `orphan_results` are (message, call id) of results without a call, `unanswered` the same of calls without a result.
    `pending_from` is the index of the assistant message whose calls still wait at the end of the history, or None.
    """

    spans: tuple[tuple[int, int], ...] = ()
    orphan_results: tuple[tuple[int, str], ...] = ()
    unanswered: tuple[tuple[int, str], ...] = ()
    pending_from: int | None = None


def pair_tools(messages: Sequence[Message]) -> ToolPairs:
    """Pair every result with the nearest earlier unanswered call of its id.

    Ids may repeat over a long conversation, and even within one message; calls of one id in one message take one result each.
    """
    waiting: dict[str, tuple[int, int]] = {}  # by id: the message that calls, and how many of its calls have no result
    ends: dict[int, int] = {}
    unanswered: list[tuple[int, str]] = []
    orphans: list[tuple[int, str]] = []
    for index, message in enumerate(messages):
        for call in message.calls:
            start, count = waiting.get(call.id, (index, 0))
            if start != index:
                unanswered += [(start, call.id)] * count
                count = 0
            waiting[call.id] = (index, count + 1)
        for result in message.results:
            start, count = waiting.pop(result.call_id, (-1, 0))
            if not count:
                orphans.append((index, result.call_id))
                continue
            ends[start] = index
            if count > 1:
                waiting[result.call_id] = (start, count - 1)
    pending_from = _pending_from(messages, {index for index, _ in waiting.values()})
    for call_id, (index, count) in waiting.items():
        unanswered += [(index, call_id)] * count if index != pending_from else []
    return ToolPairs(
        spans=tuple(sorted(ends.items())),
        orphan_results=tuple(orphans),
        unanswered=tuple(sorted(unanswered)),
        pending_from=pending_from,
    )


def _pending_from(messages: Sequence[Message], waiting: set[int]) -> int | None:
    """Return the last assistant message when it waits for results and nothing but results follows it."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "tool":
            continue
        return index if index in waiting else None
    return None


def legal_cuts(messages: Sequence[Message], pairs: ToolPairs | None = None) -> list[int]:
    """Return the indices before which the history may be cut, ascending.

    A cut is before a user or an assistant message, not the first one, and separates no call from its results; a call that
    still waits at the end stays on the kept side.
    """
    pairs = pairs or pair_tools(messages)
    last = len(messages) - 1 if pairs.pending_from is None else pairs.pending_from
    spans = iter(pairs.spans)
    span = next(spans, None)
    blocked_until = 0
    cuts = []
    for index in range(1, last + 1):
        while span is not None and span[0] < index:
            blocked_until = max(blocked_until, span[1])
            span = next(spans, None)
        if index > blocked_until and messages[index].role in ("user", "assistant"):
            cuts.append(index)
    return cuts


def turn_starts(messages: Sequence[Message]) -> list[int]:
    """Return the indices of the user messages that open a turn (the first of several in a row)."""
    return [
        index
        for index, message in enumerate(messages)
        if message.role == "user" and (index == 0 or messages[index - 1].role != "user")
    ]


def is_final(message: Message) -> bool:
    """Whether the message is a final answer: an assistant's, complete, asking for no tool."""
    return message.role == "assistant" and not message.calls and message.stop_reason not in UNFINISHED_STOPS


def open_request(messages: Sequence[Message]) -> int | None:
    """Return the index of the latest user message when its turn has no final answer yet, else None."""
    for index in range(len(messages) - 1, -1, -1):
        if is_final(messages[index]):
            return None
        if messages[index].role == "user":
            return index
    return None


def closed_groups(messages: Sequence[Message]) -> tuple[tuple[int, int], ...]:
    """Return the closed groups as half-open ranges that follow one another from index 0 (`selected_turns`).

    A group runs from a user message to just before the next one and has a final answer with every call answered. A turn
    without an answer belongs to the group that the next answered turn closes, and so does what stands before the first
    user message. What comes after the last range is not closed.
    """
    pairs = pair_tools(messages)
    crossing = _crossed(len(messages), pairs.spans)
    bounds = [*(start for start in turn_starts(messages) if start > 0), len(messages)]
    groups, start = [], 0
    for end in bounds:
        if end and is_final(messages[end - 1]) and not crossing[end]:
            groups.append((start, end))
            start = end
    return tuple(groups)


def _crossed(length: int, spans: Sequence[tuple[int, int]]) -> list[bool]:
    """Return, for each boundary before index i, whether it separates a call from its results."""
    steps = [0] * (length + 2)
    for start, end in spans:
        steps[start + 1] += 1
        steps[end + 1] -= 1
    crossed, depth = [], 0
    for step in steps[: length + 1]:
        depth += step
        crossed.append(depth > 0)
    return crossed


def explicit_groups(messages: Sequence[Message], groups: Sequence[Sequence[str]]) -> tuple[tuple[int, int], ...]:
    """Return the caller's groups of message ids as ranges, after checking that they are contiguous, ordered and disjoint.

    They start at the first message; messages after the last group belong to none. Raises GroupsError naming the first
    bad id.
    """
    ranges, position = [], 0
    known = {message.id for message in messages}
    for group in groups:
        start = position
        for message_id in group:
            if position >= len(messages) or messages[position].id != message_id:
                raise GroupsError(message_id, _group_problem(message_id, known, {m.id for m in messages[:position]}))
            position += 1
        if position > start:
            ranges.append((start, position))
    crossing = _crossed(len(messages), pair_tools(messages).spans)
    for _, end in ranges:
        if crossing[end]:
            raise GroupsError(messages[end - 1].id, "ends a group between a tool call and its result")
    return tuple(ranges)


def _group_problem(message_id: str, known: set[str], seen: set[str]) -> str:
    if message_id not in known:
        return "is not in the history"
    return "stands in a group twice or out of order" if message_id in seen else "leaves a gap before it"
