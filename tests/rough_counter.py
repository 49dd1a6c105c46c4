"""A token counter for tests that are about something else: four characters a token."""

from collections.abc import Sequence

from turnfold.core.transcript_lines import transcript_lines
from turnfold.messages.model import Message, Tool


class RoughCounter:
    """Implements the TokenCounter port."""

    name = "rough"
    request_overhead = 0

    def __init__(self, *, exact: bool = True) -> None:
        self.exact = exact

    def count_text(self, text: str) -> int:
        """A token for every four characters begun."""
        return -(-len(text) // 4)

    def count_message(self, message: Message) -> int:
        """The tokens of the message's role lines."""
        return sum(self.count_text(line.text) for line in transcript_lines([message]))

    def count_tools(self, tools: Sequence[Tool]) -> int:
        """The tokens of names and descriptions."""
        return sum(self.count_text(f"{tool.name} {tool.description}") for tool in tools)
