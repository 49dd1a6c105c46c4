"""The agent seed's count: four UTF-16 code units a token, rounded up for each message; 1,200 tokens an image (SPEC §3).

For parity only. It is about 70 % too low for Chinese.
"""

from __future__ import annotations

from collections.abc import Sequence

from turnfold.core.truncation import utf16_length
from turnfold.messages.model import Message, Tool
from turnfold.tokens.pieces import pieces, tool_text

UNITS_A_TOKEN = 4
IMAGE_TOKENS = 1_200


class Chars4Counter:
    """Counts as the agent seed does: a request is the sum of its messages."""

    name, exact, request_overhead = "chars4", False, 0

    def count_text(self, text: str) -> int:
        """Tokens of bare text."""
        return -(-utf16_length(text) // UNITS_A_TOKEN)

    def count_message(self, message: Message) -> int:
        """Tokens of one message: text, reasoning, tool names, arguments and results together, and its images."""
        found = pieces(message)
        units = sum(map(utf16_length, found.texts))
        return -(-units // UNITS_A_TOKEN) + IMAGE_TOKENS * len(found.images)

    def count_tools(self, tools: Sequence[Tool]) -> int:
        """Tokens of the offered tools' names, descriptions and schemas."""
        return sum(self.count_text(tool_text(tool)) for tool in tools)
