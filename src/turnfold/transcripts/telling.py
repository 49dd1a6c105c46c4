"""What a reader of an exported conversation is told beside its text: who, when, and what cannot be shown."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import assert_never

from turnfold.messages.model import Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from turnfold.transcripts.document import Transcript


def speaker(message: Message) -> str:
    """Return who speaks: the role, a name where the format has one, and what sets the message apart."""
    name = message.metadata.get("name")
    title = "Summary" if message.kind == "summary" else message.role.capitalize()
    who = f"{title} ({' '.join(name.split())})" if isinstance(name, str) and name.split() else title
    return f"{who}, hidden" if message.metadata.get("hidden") is True else who


def moment(message: Message) -> str:
    """Return when a message was made, in UTC; empty when unknown."""
    if message.created_at is None:
        return ""
    try:
        when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=message.created_at)
    except OverflowError:
        return ""
    return f"{when:%Y-%m-%d %H:%M:%S} UTC"


def image_words(image: Image) -> str:
    """Return what is said in place of an image."""
    if image.data is not None:
        return f"image, {image.media_type or 'unknown type'}, {len(image.data) * 3 // 4} bytes"
    return f"image: {image.url or 'no address'}"


def part_title(part: Part) -> str:
    """Return the label over a part that is not plain text."""
    match part:
        case Text():
            return ""
        case Reasoning():
            return "Reasoning"
        case ToolCall(name=name):
            return f"Call of {' '.join(name.split())}"
        case ToolResult(name=name, is_error=is_error):
            of = f" of {' '.join(name.split())}" if name and name.split() else ""
            return f"{'Error' if is_error else 'Result'}{of}"
        case Image():
            return image_words(part)
        case Opaque(source=source):
            return f"content of {source} that is not shown"
        case _ as never:
            assert_never(never)


def paths(transcript: Transcript) -> Iterator[tuple[str, tuple[Message, ...]]]:
    """Yield (heading, messages): the main path without a heading, then each branch."""
    yield "", transcript.messages
    for branch in transcript.branches:
        where = f"after message {branch.after}" if branch.after else "from the beginning"
        yield f"Branch {branch.name}, leaving {branch.parent} {where}", branch.messages
