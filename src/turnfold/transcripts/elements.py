"""A document that is one array of objects, read one object at a time: exports are larger than what they need at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from turnfold.transcripts.document import Problem
from turnfold.transcripts.reading import Row, check_start, one_row, peek, rows

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+("?)|[\[\]{}]', re.DOTALL)
_STEP: Final = 1024 * 1024
"""Bytes gathered before they are scanned; doubled as an object grows, so that work stays linear."""


def elements(chunks: Iterable[bytes]) -> Iterator[Row | Problem]:
    """Yield the objects of a document that is one array of objects; for other documents as `reading.rows` does.

    Memory: twice the largest object. What stands between the objects is not looked at.
    """
    head, chunks = peek(chunks)
    check_start(head)
    if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] != b"[":
        yield from rows(chunks)
        return
    for number, data in enumerate(_objects(chunks), 1):
        yield from one_row(f"element {number}", data)


def _objects(chunks: Iterable[bytes]) -> Iterator[bytes]:
    scanner, waiting, size = _Scanner(), [], 0
    for piece in chunks:
        waiting.append(piece)
        size += len(piece)
        if size >= max(_STEP, len(scanner.held)):
            yield from scanner.feed(b"".join(waiting))
            waiting, size = [], 0
    yield from scanner.feed(b"".join(waiting))
    yield from scanner.finish()


class _Scanner:
    """Finds objects right inside the outer array. `at` is how far `held` was scanned, `start` where an object began."""

    def __init__(self) -> None:
        self.held, self.at, self.start, self.depth = b"", 0, -1, 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take more bytes and yield the objects that they complete."""
        done = self.start if self.start >= 0 else self.at
        self.held, self.at = self.held[done:] + data, self.at - done
        self.start = 0 if self.start >= 0 else -1
        for token in _TOKEN.finditer(self.held, self.at):
            mark = token[0]
            if mark[:1] == b'"' and not token[1]:
                self.at = token.start()  # the string goes on in the next bytes
                return
            self.at = token.end()
            if mark[:1] != b'"' and self._bracket(mark, token.start()):
                yield self.held[self.start : self.at]
                self.start = -1
        self.at = len(self.held)

    def _bracket(self, mark: bytes, at: int) -> bool:
        """Count a bracket; return whether it closes an object."""
        self.depth += 1 if mark in b"[{" else -1
        if mark == b"{" and self.depth == 2:
            self.start = at
        return mark == b"}" and self.depth == 1 and self.start >= 0

    def finish(self) -> Iterator[bytes]:
        """Yield what is left open, so that its reader reports it."""
        if self.start >= 0:
            yield self.held[self.start :]
        elif self.depth > 0:
            yield b"["
