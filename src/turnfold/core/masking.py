"""The line that stands for a masked tool result, and the results that could be masked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from turnfold.core.checkpoint import Mask
from turnfold.messages.model import Image, Message, Opaque, Text, ToolResult


def maskable(rows: Iterable[Message], masks: Iterable[Mask]) -> Iterator[tuple[Message, Mask]]:
    """Yield, oldest first, each tool result that is not masked yet, with the mask it would get."""
    masked = {(mask.message_id, mask.call_id) for mask in masks}
    names: dict[str, str] = {}
    for row in rows:
        names.update((call.id, call.name) for call in row.calls)
        for result in row.results:
            if (row.id, result.call_id) not in masked:
                text = placeholder(result, result.name or names.get(result.call_id, "tool"))
                yield row, Mask(message_id=row.id, call_id=result.call_id, placeholder=text)


def placeholder(result: ToolResult, tool: str) -> str:
    """Return one line: the tool, the size of what is hidden, and how to get it back."""
    characters = sum(len(part.text) for part in result.content if isinstance(part, Text))
    others = sum(isinstance(part, Image | Opaque) for part in result.content)
    size = f"{characters} characters" + (f" and {others} attachments" if others else "")
    error = ", an error" if result.is_error else ""
    return f"[{tool} output hidden to save space: {size}{error}. Recall it by call id {result.call_id}.]"
