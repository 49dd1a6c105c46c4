"""A view that grows at its end: what the next request is when only new rows came in, at the cost of those rows alone.

Between compactions the view is append-only (SPEC §12), so a turn need not look at the whole of it again. Whatever is not
plainly an append (a repair, a memory update, a result out of place) is refused here and done the long way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from turnfold.messages.model import Message


class GrowingView(msgspec.Struct, frozen=True, kw_only=True):
    """A view as sent, its tokens as a whole request, and the calls at its end that still wait for results."""

    messages: tuple[Message, ...]
    tokens: int
    waiting: frozenset[str] = frozenset()


def grown(view: GrowingView, rows: Sequence[Message], count: Callable[[Message], int]) -> GrowingView | None:
    """Return the view with `rows` at its end, or None when they need more than appending."""
    if not rows:
        return view
    waiting, tokens = set(view.waiting), view.tokens
    for row in rows:
        if row.kind != "message" or not _in_place(row, waiting):
            return None
        tokens += count(row)
    return GrowingView(messages=view.messages + tuple(rows), tokens=tokens, waiting=frozenset(waiting))


def _in_place(row: Message, waiting: set[str]) -> bool:
    """Take the row's results off `waiting` and put its calls there; False when a provider would refuse the order."""
    if row.role == "tool":
        for result in row.results:
            if result.call_id not in waiting:
                return False
            waiting.remove(result.call_id)
        return True
    if waiting:
        return False
    calls = [call.id for call in row.calls]
    waiting.update(calls)
    return len(calls) == len(waiting)


def waiting_calls(messages: Sequence[Message]) -> frozenset[str]:
    """Return the ids of the calls at the end of a well-formed view that still wait for results."""
    answered: Counter[str] = Counter()
    for message in reversed(messages):
        if message.role != "tool":
            return frozenset(Counter(call.id for call in message.calls) - answered)
        answered.update(result.call_id for result in message.results)
    return frozenset()
