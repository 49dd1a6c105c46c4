"""What of a transcript a summarizer is shown, and an exact account of what it is not.

Middle truncation works on lines, so that a line cut in two still says whose it is: the rest of a tool's output can never
stand at the start of a line and pass for someone's words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from turnfold.core.transcript_lines import Line
from turnfold.core.truncation import kept_at_each_end, listed, utf16_head, utf16_length, utf16_tail
from turnfold.messages.model import Message, Text

CUT = "…"


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """Lines at both ends of a transcript; `dropped` characters (UTF-16 code units) are missing between them.

    `not_shown` says in words which messages were not shown, or not wholly.
    """

    head: tuple[Line, ...]
    tail: tuple[Line, ...] = ()
    dropped: int = 0
    not_shown: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[Line, ...]:
        """All lines shown."""
        return self.head + self.tail

    @property
    def text(self) -> str:
        """The lines as a text, with a note where the middle is missing."""
        if not self.dropped:
            return joined(self.head)
        return "\n".join(part for part in (joined(self.head), gap_note(self.dropped), joined(self.tail)) if part)


def joined(lines: Iterable[Line]) -> str:
    """Return lines as one text."""
    return "\n".join(line.text for line in lines)


def gap_note(dropped: int) -> str:
    """Return the note that stands where the middle was."""
    return f"(… {dropped} characters of the conversation are not shown here …)"


def transcript_length(lines: Sequence[Line]) -> int:
    """Return the characters (UTF-16 code units) of the lines as one text."""
    return sum(map(_length, lines)) + max(0, len(lines) - 1)


def _length(line: Line) -> int:
    return utf16_length(line.text)


def excerpt(lines: Sequence[Line], max_chars: int | None = None) -> Excerpt:
    """Return all lines when they fit `max_chars`, else 30 % of it from the start and 30 % from the end."""
    if max_chars is None:
        return Excerpt(head=tuple(lines))
    length = transcript_length(lines)
    if length <= max_chars:
        return Excerpt(head=tuple(lines))
    kept = kept_at_each_end(max_chars)
    head, first_cut = _taken(lines, kept)
    reversed_tail, last_cut = _taken_from_end(lines, kept)
    return Excerpt(
        head=head,
        tail=reversed_tail[::-1],
        dropped=length - 2 * kept,
        not_shown=(_named(lines[first_cut : len(lines) - last_cut], length - 2 * kept),),
    )


def _taken(lines: Iterable[Line], room: int) -> tuple[tuple[Line, ...], int]:
    """Return whole lines from the start, the next one cut to what room is left, and how many are whole."""
    taken: list[Line] = []
    for line in lines:
        size = _length(line)
        if size > room:
            shown = utf16_head(line.body, room - (size - utf16_length(line.body)))
            part = (msgspec.structs.replace(line, body=shown + CUT),) if shown else ()
            return (*taken, *part), len(taken)
        taken.append(line)
        room -= size + 1
    return tuple(taken), len(taken)


def _taken_from_end(lines: Sequence[Line], room: int) -> tuple[tuple[Line, ...], int]:
    """Return whole lines from the end, last first, the next one cut to the room left, and how many are whole."""
    taken: list[Line] = []
    for line in reversed(lines):
        size = _length(line)
        if size > room:
            shown = utf16_tail(line.body, room)
            part = (msgspec.structs.replace(line, body=f"{CUT} {shown}"),) if shown else ()
            return (*taken, *part), len(taken)
        taken.append(line)
        room -= size + 1
    return tuple(taken), len(taken)


def _named(cut: Sequence[Line], dropped: int) -> str:
    """Say which messages were cut: the first, the last, how many, and how much."""
    ids = list(dict.fromkeys(line.message_id for line in cut))
    where = f"message {ids[0]}" if len(ids) == 1 else f"messages {ids[0]} to {ids[-1]} ({len(ids)})"
    return f"{where}: {dropped} characters from the middle of the conversation"


def long_results(messages: Iterable[Message], max_chars: int) -> tuple[str, ...]:
    """Name the tool results of which only the first `max_chars` characters are shown, in one sentence, if any."""
    ids = list(dict.fromkeys(_with_long_results(messages, max_chars)))
    return (f"tool results beyond their first {max_chars} characters: {listed(ids)}",) if ids else ()


def _with_long_results(messages: Iterable[Message], max_chars: int) -> Iterator[str]:
    for message in messages:
        for result in message.results:
            size = sum(utf16_length(part.text) for part in result.content if isinstance(part, Text))
            if size > max_chars:
                yield message.id
