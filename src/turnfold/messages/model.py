"""Messages and their parts: the one in-memory form of a conversation.

Every codec decodes into these values and every store keeps them; they are frozen, so a message once read cannot change
under anyone's hands. What a message *means* (its digest) is defined in `canonical`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Any, Literal, TypeAlias

import msgspec

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Kind: TypeAlias = Literal["message", "summary", "memory_update", "reminder"]

ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")
KINDS: tuple[Kind, ...] = ("message", "summary", "memory_update", "reminder")


class Text(msgspec.Struct, frozen=True, kw_only=True, tag="text"):
    """Plain text."""

    text: str


class Reasoning(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="reasoning"):
    """A model's reasoning. `payload` is what its provider wants back untouched (a signature, an encrypted item), as JSON text."""

    text: str = ""
    payload: str | None = None
    provider: str | None = None


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, tag="tool_call"):
    """A call of a tool. `arguments` is JSON text exactly as the model wrote it, which may be invalid JSON."""

    id: str
    name: str
    arguments: str


class Image(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="image"):
    """An image, by `url` or as base64 `data` of `media_type`."""

    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    detail: str | None = None


class Opaque(msgspec.Struct, frozen=True, kw_only=True, tag="opaque"):
    """Content of a provider or file format that turnfold does not know, kept byte for byte as JSON text."""

    source: str
    payload: str


class ToolResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="tool_result"):
    """What a tool answered to the call `call_id`. `name` is the tool's, where the format says it."""

    call_id: str
    content: tuple[Text | Image | Opaque, ...] = ()
    is_error: bool = False
    name: str | None = None


Part: TypeAlias = Text | Reasoning | ToolCall | ToolResult | Image | Opaque


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens that a provider reported for one reply. `input` excludes what was read from or written to its cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total: int = 0

    @property
    def prompt(self) -> int:
        """Tokens of the request, cached or not."""
        return self.input + self.cache_read + self.cache_write


def add_usage(one: Usage | None, other: Usage | None) -> Usage | None:
    """Return the sum of two usages; None stands for not reported."""
    if one is None or other is None:
        return one or other
    return Usage(**{name: getattr(one, name) + getattr(other, name) for name in Usage.__struct_fields__})


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message.

    `created_at` is UTC in ms. `metadata` belongs to the caller and the formats (a speaker's name, foreign ids, the
    `compaction` record of a summary); treat it as read-only. A `tool` message holds tool results only.
    """

    id: str
    role: Role
    parts: tuple[Part, ...] = ()
    kind: Kind = "message"
    created_at: int | None = None
    usage: Usage | None = None
    stop_reason: str | None = None
    model: str | None = None
    metadata: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """All text parts, joined by newlines."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))


class Tool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool offered to the model; `parameters` is its JSON schema."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}


def text_message(
    message_id: str, role: Role, text: str, *, kind: Kind = "message", created_at: int | None = None
) -> Message:
    """Return a message of one text part."""
    return Message(id=message_id, role=role, parts=(Text(text=text),), kind=kind, created_at=created_at)


def leading_system(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return the system messages that come before any other."""
    return tuple(takewhile(lambda message: message.role == "system", messages))
