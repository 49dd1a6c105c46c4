"""Assembles what a model call sees, and repairs what a provider would reject. The log is never touched (SPEC §5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from turnfold.core.checkpoint import Mask
from turnfold.core.groups import ToolPairs, pair_tools
from turnfold.core.reasons import Reason
from turnfold.messages.model import Message, Text, ToolResult

NO_RESULT = "[no result was recorded for this call]"
ORPHAN_RESULT = "[a tool result whose call is no longer in the conversation]"


class ViewParts(msgspec.Struct, frozen=True, kw_only=True):
    """What a view is made of, in the default order.

    `pins` are covered messages shown verbatim, `request` the covered request of an open turn, `history` every message
    after the coverage, `injected` what the caller adds just before the incoming turn, `restored` reminders that a
    compaction put back, which stand at the end of the log.
    """

    fixed: tuple[Message, ...] = ()
    pins: tuple[Message, ...] = ()
    summary: Message | None = None
    request: Message | None = None
    history: tuple[Message, ...] = ()
    injected: tuple[Message, ...] = ()
    incoming: tuple[Message, ...] = ()
    restored: tuple[Message, ...] = ()


Assembler: TypeAlias = Callable[[ViewParts], tuple[Message, ...]]
"""Puts the parts in order; replaceable (SPEC §7). It may render them anew but must keep their text verbatim."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The messages to send, and what was repaired in them."""

    messages: tuple[Message, ...]
    repairs: tuple[Reason, ...] = ()


def assemble(parts: ViewParts) -> tuple[Message, ...]:
    """Put the parts in the default order."""
    summary = (parts.summary,) if parts.summary else ()
    request = (parts.request,) if parts.request else ()
    return (
        *parts.fixed,
        *parts.pins,
        *summary,
        *request,
        *parts.history,
        *parts.injected,
        *parts.incoming,
        *parts.restored,
    )


def render_view(parts: ViewParts, assembler: Assembler = assemble) -> View:
    """Assemble and repair: no tool result without its call, no answered or abandoned call without results."""
    messages = assembler(parts)
    pairs = pair_tools(messages)
    if _well_formed(messages, pairs):
        return View(messages=messages)
    return View(messages=tuple(_repaired(messages, pairs)), repairs=tuple(_reports(messages, pairs)))


def _well_formed(messages: Sequence[Message], pairs: ToolPairs) -> bool:
    if pairs.orphan_results or pairs.unanswered:
        return False
    return all(_results_follow(messages, start, end) for start, end in pairs.spans)


def _results_follow(messages: Sequence[Message], start: int, end: int) -> bool:
    return all(messages[index].role == "tool" for index in range(start + 1, end + 1))


def _reports(messages: Sequence[Message], pairs: ToolPairs) -> Iterator[Reason]:
    for index, call_id in pairs.orphan_results:
        yield Reason(code="orphan_result", detail=f"message {messages[index].id!r} answers unknown call {call_id!r}")
    for index, call_id in pairs.unanswered:
        yield Reason(code="orphan_call", detail=f"call {call_id!r} of message {messages[index].id!r} has no result")
    for start, end in pairs.spans:
        if not _results_follow(messages, start, end):
            yield Reason(code="late_result", detail=f"results of message {messages[start].id!r} were moved to it")


def _repaired(messages: Sequence[Message], pairs: ToolPairs) -> Iterator[Message]:
    """Yield the messages with every call followed at once by one result each, and orphan results as plain text."""
    answers = _answers(messages)
    orphans: dict[int, Counter[str]] = {}
    for index, call_id in pairs.orphan_results:
        orphans.setdefault(index, Counter())[call_id] += 1
    waiting = len(messages) if pairs.pending_from is None else pairs.pending_from
    for index, message in enumerate(messages):
        if index == waiting:  # its results are to follow it at once, so nothing else may
            for later in range(index + 1, len(messages)):
                yield from _orphans_as_text(messages[later], orphans.get(later, Counter()))
        if message.role == "tool":
            if index < waiting:
                yield from _orphans_as_text(message, orphans.get(index, Counter()))
            continue
        yield message
        for call in message.calls:
            if given := answers.get((index, call.id)):
                yield given.pop(0)
            elif index != pairs.pending_from:
                yield _result_message(message.id, ToolResult(call_id=call.id, content=(Text(text=NO_RESULT),)))


def _answers(messages: Sequence[Message]) -> dict[tuple[int, str], list[Message]]:
    """Return the messages that answer each call, in order, by the call's message index and id."""
    waiting: dict[str, tuple[int, int]] = {}
    answers: dict[tuple[int, str], list[Message]] = {}
    for index, message in enumerate(messages):
        for call_id, count in Counter(call.id for call in message.calls).items():
            waiting[call_id] = (index, count)
        for result in message.results:
            start, count = waiting.get(result.call_id, (-1, 0))
            if count:
                waiting[result.call_id] = (start, count - 1)
                alone = len(message.parts) == 1
                given = message if alone else _result_message(message.id, result)
                answers.setdefault((start, result.call_id), []).append(given)
    return answers


def _result_message(message_id: str, result: ToolResult) -> Message:
    return Message(id=f"{message_id}#{result.call_id}", role="tool", parts=(result,))


def _orphans_as_text(message: Message, orphans: Counter[str]) -> Iterator[Message]:
    """Yield the results that no call waits for, as text; of one id's results in a message the first are the answers."""
    answers = Counter(result.call_id for result in message.results) - orphans
    for number, result in enumerate(message.results):
        if answers[result.call_id]:
            answers[result.call_id] -= 1
            continue
        content = (Text(text=ORPHAN_RESULT), *result.content)
        yield Message(id=f"{message.id}#{number}#{result.call_id}", role="user", parts=content)


def apply_masks(messages: Iterable[Message], masks: Iterable[Mask]) -> tuple[Message, ...]:
    """Return the messages with each masked tool result replaced by its placeholder."""
    by_message: dict[str, dict[str, Mask]] = {}
    for mask in masks:
        by_message.setdefault(mask.message_id, {})[mask.call_id] = mask
    if not by_message:
        return tuple(messages)
    return tuple(_masked(m, by_message[m.id]) if m.id in by_message else m for m in messages)


def _masked(message: Message, masks: Mapping[str, Mask]) -> Message:
    parts = tuple(
        msgspec.structs.replace(part, content=(Text(text=masks[part.call_id].placeholder),))
        if isinstance(part, ToolResult) and part.call_id in masks
        else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)


def closed_under_tools(messages: Sequence[Message], ids: Collection[str]) -> frozenset[str]:
    """Return `ids` grown so that it splits no tool pair: a pinned result brings its call and the call's other results."""
    wanted = set(ids)
    for start, end in pair_tools(messages).spans:
        block = {message.id for message in messages[start : end + 1] if message.role in ("assistant", "tool")}
        if block & wanted:
            wanted |= block
    return frozenset(wanted)
