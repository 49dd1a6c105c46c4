"""Which format a file is in, by its content: names and endings of files say nothing here."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from turnfold.errors import TranscriptError
from turnfold.transcripts.reading import BrokenJson, check_start, parse

MAX_ROWS: Final = 200
"""Rows looked at; every format shows itself within its first few."""

HEAD_BYTES: Final = 1024 * 1024
"""How much of a file is enough to tell its format."""

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+("?)|[\[\]{}:,]|[^\s\[\]{}:,"]++', re.DOTALL)


def detect(head: bytes, formats: Sequence[tuple[str, Callable[[Any], bool]]]) -> str:
    """Return the name of the first format of `formats` that recognizes one of the file's first values.

    In: the file's first bytes (`HEAD_BYTES` is enough) and (name, predicate) pairs, the most specific first. Raises
    TranscriptError when the file is empty, not text, not JSON, or no conversation.
    """
    check_start(head)
    values = first_values(head)
    for name, recognizes in formats:
        if any(recognizes(value) for value in values):
            return name
    raise _unknown(head)


def _unknown(head: bytes) -> TranscriptError:
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    try:
        parse(first.partition(b"\n")[0])
    except BrokenJson as error:
        if first[:1] not in (b"{", b"["):
            return TranscriptError("file", "it is not JSON or JSON Lines", "Give a transcript in a known format.")
        return TranscriptError("line 1", error.reason, "Repair the file, or give another one.")
    reason = "it is JSON, but not a conversation in any known format"
    return TranscriptError("file", reason, "See docs/formats.md, or name the format.")


def first_values(head: bytes) -> list[Any]:
    """Return the JSON values that a file starts with: of each whole line, or of its one document as far as it goes."""
    text = head.removeprefix(b"\xef\xbb\xbf")
    values = []
    for line in text.split(b"\n", MAX_ROWS)[:MAX_ROWS]:
        try:
            values.append(parse(line)[0])
        except BrokenJson:
            continue
    if any(isinstance(value, dict | list) and value for value in values[:1]):
        return values
    whole = completed(text)
    return [whole, *values] if whole is not None else values


def completed(text: bytes) -> Any:
    """Return the value of a JSON text that breaks off, closed after its last complete element; None if there is none."""
    closers: list[bytes] = []
    cuts: list[tuple[int, bytes]] = []
    for token in _TOKEN.finditer(text):
        first = token[0][:1]
        if first == b'"' and not token[1]:
            break  # the text breaks off within a string
        if first in b"[{":
            closers.append(b"]" if first == b"[" else b"}")
            cuts.append((token.end(), b"".join(reversed(closers))))
        elif first in b"]}":
            if not closers or closers.pop() != first:
                break
            cuts.append((token.end(), b"".join(reversed(closers))))
            if not closers:
                break
        elif first == b",":
            cuts.append((token.start(), b"".join(reversed(closers))))
        if len(closers) > MAX_ROWS:
            break
    for end, tail in reversed(cuts[-3:]):
        try:
            return parse(text[:end] + tail)[0]
        except BrokenJson:
            continue
    return None
