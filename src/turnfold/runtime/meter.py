"""Counts requests with the one counter, each message once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from turnfold.messages.log import LogEntry
from turnfold.messages.model import Message, Tool
from turnfold.ports import TokenCounter


class Meter:
    """Remembers the tokens of messages by id, as long as the same object stands behind the id.

    A masked or repaired message is another object under the same id and is counted anew: by `count`, the counter's own
    way of counting a message unless another is given that remembers more.
    """

    def __init__(self, counter: TokenCounter, *, count: Callable[[Message], int] | None = None) -> None:
        self.counter, self._count = counter, count or counter.count_message
        self._known: dict[str, tuple[Message, int]] = {}
        self._tools: tuple[tuple[Tool, ...], int] = ((), 0)

    def learn(self, entries: Iterable[LogEntry]) -> None:
        """Take over the counts stored with entries under this counter's name."""
        for entry in entries:
            tokens = entry.counts.get(self.counter.name)
            if tokens is not None:
                self._known[entry.message.id] = (entry.message, tokens)

    def message(self, message: Message) -> int:
        """Return the tokens of one message."""
        known = self._known.get(message.id)
        if known is not None and known[0] is message:
            return known[1]
        tokens = self._count(message)
        self._known[message.id] = (message, tokens)
        return tokens

    def messages(self, messages: Iterable[Message]) -> int:
        """Return the tokens of some messages together."""
        return sum(map(self.message, messages))

    def tools(self, tools: tuple[Tool, ...]) -> int:
        """Return the tokens of the offered tools."""
        if self._tools[0] != tools:
            self._tools = (tools, self.counter.count_tools(tools) if tools else 0)
        return self._tools[1]

    def request(self, messages: Sequence[Message], tools: tuple[Tool, ...]) -> int:
        """Return the tokens of a whole request."""
        return self.counter.request_overhead + self.messages(messages) + self.tools(tools)

    def forget_all_but(self, ids: Iterable[str]) -> None:
        """Drop what is remembered of other messages, so that memory stays bounded by the view."""
        kept = set(ids)
        self._known = {message_id: known for message_id, known in self._known.items() if message_id in kept}
