"""What of a message a search finds: its speaker's name, text, calls and results; not what came out of a search itself."""

from __future__ import annotations

import re

from turnfold.core.speakers import name_of, named_prefix
from turnfold.messages.model import Message, Text

RECALL_TOOL = "recall"
"""Name of the search tool. Its calls and results are left out: they would be the best hit for every search made twice."""

_BLANKS = re.compile(r"\s+")


def searchable_text(message: Message) -> str:
    """Return the text that is indexed, and that excerpts are taken from. Empty where there is nothing to find."""
    spoken = message.text
    name = name_of(message)
    if name is not None and named_prefix(spoken) != name:
        spoken = f"{name}: {spoken}"
    pieces = [spoken, *(f"{call.name} {call.arguments}" for call in message.calls if call.name != RECALL_TOOL)]
    for result in message.results:
        if result.name != RECALL_TOOL:
            pieces += [part.text for part in result.content if isinstance(part, Text)]
    return "\n".join(piece for piece in pieces if piece)


def one_line(text: str) -> str:
    """Return text with every run of blanks and line ends as one blank."""
    return _BLANKS.sub(" ", text).strip()
