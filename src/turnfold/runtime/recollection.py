"""What was worked out of messages before, found again by what they say: requests bring the same history every turn, as new
objects each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from turnfold.messages.canonical import digest
from turnfold.messages.model import Message, Part, Role
from turnfold.tokens.pieces import pieces

MAX_CHARACTERS = 16_000_000
"""Characters of messages that are remembered, by default."""

ENTRY_CHARACTERS = 300
"""What remembering a message costs beside its text."""

_Content: TypeAlias = tuple[Role, tuple[Part, ...]]


class _Entry(msgspec.Struct):
    tokens: int | None = None
    digest: str | None = None


class Recollection:
    """Tokens and digests by content, in bounded memory: what was not asked for lately is forgotten.

    `count_message` counts tokens by role and parts alone. Not more than `max_characters` of text are held.
    """

    def __init__(self, count_message: Callable[[Message], int], *, max_characters: int = MAX_CHARACTERS) -> None:
        self._count_message, self._half = count_message, max_characters // 2
        self._lately: dict[_Content, _Entry] = {}
        self._before: dict[_Content, _Entry] = {}
        self._held = 0

    def tokens(self, message: Message) -> int:
        """Return the tokens of a message."""
        entry = self._entry(message)
        if entry.tokens is None:
            entry.tokens = self._count_message(message)
        return entry.tokens

    def digest(self, message: Message) -> str:
        """Return the digest of a message."""
        entry = self._entry(message)
        if entry.digest is None:
            entry.digest = digest(message)
        return entry.digest

    def _entry(self, message: Message) -> _Entry:
        content = (message.role, message.parts)
        entry = self._lately.get(content)
        return self._remembered(content, message) if entry is None else entry

    def _remembered(self, content: _Content, message: Message) -> _Entry:
        entry = self._before.get(content) or _Entry()
        size = ENTRY_CHARACTERS + _size(message)
        if size > self._half:
            return entry
        if self._held + size > self._half:
            self._before, self._lately, self._held = self._lately, {}, 0
        self._lately[content] = entry
        self._held += size
        return entry


def _size(message: Message) -> int:
    found = pieces(message)
    return sum(map(len, found.texts)) + sum(len(image.data or image.url or "") for image in found.images)
