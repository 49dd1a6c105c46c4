"""Reading the shared vectors."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from turnfold.messages.canonical import js_json
from turnfold.messages.model import Message
from turnfold.transcripts import decode_one


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file of vectors."""
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def letta(rows: list[dict[str, Any]]) -> tuple[Message, ...]:
    """Return messages given in the letta-code local format."""
    return decode_one(js_json({"messages": rows}).encode(), format_name="letta").messages
