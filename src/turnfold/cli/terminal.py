"""What reaches the terminal: documents on standard output, everything else on standard error, nothing that moves the cursor."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from turnfold.core.reasons import Reason
from turnfold.messages.model import Message, ToolCall

error_console = Console(stderr=True, highlight=False)


T = TypeVar("T")
EXIT_INTERRUPT = 130


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine; Ctrl-C ends it cleanly, with the exit code that shells expect."""
    try:
        return asyncio.run(coroutine)
    except KeyboardInterrupt:
        note("turnfold: interrupted")
        raise SystemExit(EXIT_INTERRUPT) from None


def console() -> Console:
    """Return the console of standard output."""
    return Console(highlight=False)


def print_json(document: Any) -> None:
    """Write one JSON document, and nothing else, to standard output."""
    data = msgspec.json.format(msgspec.json.encode(document), indent=2)
    sys.stdout.write(data.decode("utf-8", "replace") + "\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """Say something beside the result, on standard error."""
    error_console.print(Text(visible(text)))


def visible(text: str) -> str:
    """Return text from a conversation with its control characters made visible, so that it cannot drive the terminal."""
    return "".join(char if char in "\n\t" or char.isprintable() else f"\\x{ord(char):02x}" for char in text)


def excerpt(text: str, most: int = 80) -> str:
    """Return one line of at most `most` characters."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= most else line[: most - 1] + "…"


def message_line(message: Message, most: int = 80) -> str:
    """Return what a message says, in one line: its text, its calls, its results."""
    said = [message.text] if message.text else []
    said += [f"→ {part.name}({part.arguments})" for part in message.parts if isinstance(part, ToolCall)]
    for result in message.results:
        said.append("← " + " ".join(getattr(part, "text", "[attachment]") for part in result.content))
    return excerpt(" ".join(said), most)


def bar(used: int, whole: int, width: int = 40) -> str:
    """Return a bar of `width` characters with the used share filled."""
    filled = min(width, round(width * used / whole)) if whole > 0 else width
    return "█" * filled + "░" * (width - filled)


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Table:
    """Return a plain table; numbers are set to the right."""
    made = Table(title=title, title_justify="left", header_style="bold")
    listed = [list(row) for row in rows]
    for index, column in enumerate(columns):
        numeric = bool(listed) and all(isinstance(row[index], int) for row in listed)
        made.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in listed:
        made.add_row(*(Text(visible(str(cell))) for cell in row))
    return made


def summary_table(title: str, rows: Sequence[Mapping[str, object]], *, first: str) -> Table:
    """Return what became of one thing, downwards; of several, a row each, led by `first`, without what all of them lack."""
    if len(rows) == 1:
        return table(title, ("what", "value"), [(_label(name), value) for name, value in rows[0].items()])
    told = [name for name in (rows[0] if rows else {}) if name == first or any(row[name] for row in rows)]
    return table(title, [_label(name) for name in told], [[row[name] for name in told] for row in rows])


def _label(name: str) -> str:
    return name.removesuffix("_id").replace("_", " ")


def reason_list(reasons: Iterable[Reason]) -> list[dict[str, str]]:
    """Return reasons as JSON objects."""
    return [{"code": reason.code, "detail": reason.detail} for reason in reasons]
