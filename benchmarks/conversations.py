"""Long conversations for benchmarks: text like people's and tools', cheap to make, never two messages alike."""

from __future__ import annotations

import random
from collections.abc import Iterator

from turnfold.messages.model import Message, Text, ToolCall, ToolResult, text_message

WORDS = [
    "the",
    "build",
    "failed",
    "on",
    "linux",
    "because",
    "a",
    "socket",
    "stayed",
    "open",
    "after",
    "the",
    "second",
    "retry",
    "so",
    "we",
    "moved",
    "the",
    "close",
    "call",
    "into",
    "finally",
    "and",
    "ran",
    "it",
    "forty",
    "times",
    "without",
    "a",
    "failure",
    "then",
    "the",
    "reviewer",
    "asked",
    "for",
    "a",
    "test",
    "and",
    "a",
    "line",
    "in",
    "the",
    "changelog",
    "about",
    "ports",
    "8080",
    "and",
    "9443",
    "in",
    "config/gateway.toml",
    "with",
    "ticket",
    "OPS-1187",
    "for",
    "the",
    "release",
    "of",
    "version",
    "2.4.1",
]


def sentences(chance: random.Random, words: int) -> str:
    """Return about `words` words of plausible talk."""
    return " ".join(chance.choices(WORDS, k=words)).capitalize() + "."


def exchanges(count: int, *, start: int = 0, words: int = 40) -> Iterator[tuple[Message, Message]]:
    """Yield `count` turns of a user's message and its answer, numbered from `start`."""
    chance = random.Random(start)
    for number in range(start, start + count):
        yield (
            text_message(f"u{number}", "user", sentences(chance, words), created_at=1_700_000_000_000 + number),
            text_message(f"a{number}", "assistant", sentences(chance, words), created_at=1_700_000_000_000 + number),
        )


def tool_steps(count: int, *, seed: int = 0) -> Iterator[Message]:
    """Yield one request and `count` steps of a call and its result."""
    chance = random.Random(seed)
    yield text_message("request", "user", sentences(chance, 30))
    for number in range(count):
        call = ToolCall(id=f"call{number}", name="bash", arguments=f'{{"cmd":"cat src/file{number}.py"}}')
        yield Message(id=f"c{number}", role="assistant", parts=(Text(text=sentences(chance, 8)), call))
        result = ToolResult(call_id=call.id, name="bash", content=(Text(text=sentences(chance, 200)),))
        yield Message(id=f"r{number}", role="tool", parts=(result,))
