"""Who says a message: a name from its metadata, a name that its text begins with, or its role."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from turnfold.core.text.scripts import Language
from turnfold.messages.model import Message, Role

ROLE_LABELS: dict[Language, dict[Role, str]] = {
    "en": {"user": "User", "assistant": "Assistant", "tool": "Tool", "system": "System"},
    "zh": {"user": "用户", "assistant": "助手", "tool": "工具", "system": "系统"},
}

_ROLE_LABELS = frozenset(label for table in ROLE_LABELS.values() for label in table.values())
_PREFIX = re.compile(r"\s*([^\s:：\[\]{}<>()\"'`/\\][^:：\n\[\]{}<>()\"'`/\\]{0,23})(?:: |：)")
_SHARE = 0.6
"""Of a role's messages, this share must begin with a recurring label before the label is read as a speaker."""


def name_of(message: Message) -> str | None:
    """Return the speaker's name that the format told, if any."""
    for key in ("name", "speaker"):
        name = message.metadata.get(key)
        if isinstance(name, str) and 0 < len(name) <= 40:
            return name
    return None


def named_prefix(text: str) -> str | None:
    """Return what stands before a colon at the start of a text: perhaps a speaker's name."""
    match = _PREFIX.match(text)
    return match.group(1) if match else None


class Speakers:
    """Labels of the speakers in a stretch of messages."""

    def __init__(self, messages: Iterable[Message], language: Language) -> None:
        self._labels = ROLE_LABELS[language]
        self._prefixes = _recurring_prefixes(messages)

    def split(self, message: Message, text: str) -> tuple[str, str]:
        """Return (label, what is said): a name that the text itself begins with is the label and not said again."""
        match = _PREFIX.match(text)
        if match and match.group(1) in self._prefixes.get(message.role, ()):
            return match.group(1), text[match.end() :]
        return name_of(message) or self._labels[message.role], text

    @staticmethod
    def is_role(label: str) -> bool:
        """Return whether a label is only a role's, not a name."""
        return label in _ROLE_LABELS

    def tool(self, name: str | None) -> str:
        """Return the label of a tool's result."""
        return name or self._labels["tool"]

    @property
    def known(self) -> frozenset[str]:
        """All labels that a line of an earlier summary may begin with."""
        names = frozenset(name for names in self._prefixes.values() for name in names)
        return names | _ROLE_LABELS


def _recurring_prefixes(messages: Iterable[Message]) -> dict[Role, frozenset[str]]:
    totals: Counter[Role] = Counter()
    seen: dict[Role, Counter[str]] = {}
    for message in messages:
        text = message.text if message.role in {"user", "assistant"} else ""
        if not text:
            continue
        totals[message.role] += 1
        match = _PREFIX.match(text[:32])
        if match:
            seen.setdefault(message.role, Counter())[match.group(1)] += 1
    found: dict[Role, frozenset[str]] = {}
    for role, labels in seen.items():
        recurring = {label: count for label, count in labels.items() if count > 1}
        if sum(recurring.values()) >= _SHARE * totals[role]:
            found[role] = frozenset(recurring)
    return found
