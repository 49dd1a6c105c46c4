"""A counter of whole requests over a counter of text: message overhead, images and tools as OpenAI's chat models count.

Overheads: 3 tokens a message, 1 for its role's name and 3 to prime the reply (OpenAI cookbook, "How to count tokens with
tiktoken"); images: 85 tokens in low detail, 765 otherwise, which is 1024 x 1024 in high detail (OpenAI vision guide); a tool
call and a tool each carry a few tokens of syntax around their text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from turnfold.messages.model import Image, Message, Tool
from turnfold.tokens.pieces import pieces, tool_text

MESSAGE_OVERHEAD = 4
REQUEST_OVERHEAD = 3
CALL_OVERHEAD = 8
TOOL_OVERHEAD = 8
IMAGE_LOW, IMAGE_HIGH = 85, 765


class RequestCounter:
    """Counts requests; `count_text` counts bare text exactly or as an estimate."""

    request_overhead = REQUEST_OVERHEAD

    def __init__(self, name: str, count_text: Callable[[str], int], *, exact: bool) -> None:
        self.name, self.exact, self._count_text = name, exact, count_text

    def count_text(self, text: str) -> int:
        """Tokens of bare text."""
        return self._count_text(text)

    def count_message(self, message: Message) -> int:
        """Tokens of one message as sent, its overhead included."""
        found = pieces(message)
        tokens = MESSAGE_OVERHEAD + CALL_OVERHEAD * len(message.calls)
        for text in found.texts:
            if text:
                tokens += self._count_text(text)
        return tokens + sum(map(image_tokens, found.images))

    def count_tools(self, tools: Sequence[Tool]) -> int:
        """Tokens of the offered tools' names, descriptions and schemas."""
        return sum(TOOL_OVERHEAD + self._count_text(tool_text(tool)) for tool in tools)


def image_tokens(image: Image) -> int:
    """Return what an image takes: its pixels are not known, so the detail decides."""
    return IMAGE_LOW if image.detail == "low" else IMAGE_HIGH
