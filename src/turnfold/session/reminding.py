"""Reminders: what must stand again after a compaction (a to-do list, client context, a permission mode)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from turnfold.messages.model import Message, text_message

ReminderProvider: TypeAlias = Callable[[], Awaitable[str]]
"""Returns the reminder's text as it is now; blank means that there is nothing to remind of."""

MAX_REMINDER_CHARS = 4_000


async def reminder_messages(
    providers: Mapping[str, ReminderProvider], *, version: int, created_at: int, new_id: Callable[[], str]
) -> tuple[Message, ...]:
    """Return one message of kind `reminder` for each provider that has something to say, limited in characters."""
    messages = []
    for name, provider in providers.items():
        text = (await provider()).strip()
        if text:
            message_id = f"reminder-{name}-{version}-{new_id()}"
            body = f'<reminder name="{name}">\n{limited(text)}\n</reminder>'
            messages.append(text_message(message_id, "user", body, kind="reminder", created_at=created_at))
    return tuple(messages)


def limited(text: str) -> str:
    """Return the text, or its first characters with a note of how many are left out."""
    if len(text) <= MAX_REMINDER_CHARS:
        return text
    return f"{text[:MAX_REMINDER_CHARS]}\n[{len(text) - MAX_REMINDER_CHARS} more characters are not shown]"
