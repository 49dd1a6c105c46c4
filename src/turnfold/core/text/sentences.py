"""Cutting text into sentences, English and Chinese, without cutting through numbers, paths, versions or initials."""

from __future__ import annotations

import re

MAX_SENTENCE = 400
"""Characters; a longer stretch without an end (a log line, a list without points) is cut at a comma or blank."""

_ENDS = re.compile(
    r"""[。！？｡…!?.\n](?:  # one class first: the engine skips to the next of its characters
     (?<=[。！？｡…])[。！？｡…!?]*[”’」』）】"')\]]*  # full-width ends need no blank after them
    |(?:(?<=[!?])[!?]*|(?<=\.)\.*)["'”’」』）)\]*_`]*(?=\s|$|[^\x00-\x7f])  # others do: 3.5, a.py and x?y=1 stay whole
    |(?<=\n)\n*)""",
    re.VERBOSE,
)
_NO_END = re.compile(
    r"(?:^|[\s(])(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e|No|Inc|Ltd|approx|Fig|cf|al|\d{1,2})\.$"
)
_PLACE_TO_CUT = re.compile(r"[,;，；、]\s?|\s")


def sentences(text: str) -> list[str]:
    """Return the sentences of `text` in order, stripped, none empty; line ends end a sentence too."""
    found: list[str] = []
    start = 0
    for match in _ENDS.finditer(text):
        end = match.end()
        if match.group() == "." and _NO_END.search(text[max(start, end - 12) : end]):
            continue
        _add(text[start:end], found)
        start = end
    _add(text[start:], found)
    return found


def _add(piece: str, found: list[str]) -> None:
    stripped = piece.strip()
    while len(stripped) > MAX_SENTENCE:
        at = _cut(stripped)
        found.append(stripped[:at].strip())
        stripped = stripped[at:].strip()
    if stripped:
        found.append(stripped)


def _cut(text: str) -> int:
    """Index at or below MAX_SENTENCE, after the last comma or blank of the second half where there is one."""
    at = MAX_SENTENCE
    for match in _PLACE_TO_CUT.finditer(text, MAX_SENTENCE // 2, MAX_SENTENCE):
        at = match.end()
    return at
