"""A passage: a piece of a conversation that can stand alone in a summary, and how far it is to be trusted to tell something."""

from __future__ import annotations

import msgspec

from turnfold.core.sections import Section

EARLIER = -1
"""The message index of passages from the previous summary; its lines count down from here."""

LINE_CHARS = 200
"""Most characters kept of one line of tool output, of code, or of a call's argument."""


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of text by `speaker` ("" for narration) in message `message`, for `section`.

    `factor` weighs what it tells against other passages. `wish` says that its speaker wants something. `alone` says that
    it stands on a line of its own, because it is no sentence of a speech: a tool's output, a command.
    """

    message: int
    speaker: str
    text: str
    section: Section = "happened"
    factor: float = 1.0
    wish: bool = False
    alone: bool = False


def shorten(line: str, most: int = LINE_CHARS) -> str:
    """Return a line of at most `most` characters, its middle left out where it was longer."""
    return line if len(line) <= most else f"{line[: most * 2 // 3]} … {line[-(most // 3 - 3) :]}"
