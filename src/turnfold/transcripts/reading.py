"""From bytes to JSON values: lines, whole documents, and the repairs that untrusted text needs.

Everything that comes out is safe to keep: valid Unicode, finite numbers that JSON can carry, nesting that a recursive
reader can follow. What cannot be made so is reported with its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Final

import msgspec

from turnfold.errors import TranscriptError
from turnfold.transcripts.document import Problem

MAX_DEPTH: Final = 128
"""Levels of nesting taken; real transcripts stay under 30, and recursive readers fail near 1,000."""

MAX_LINE_BYTES: Final = 256 * 1024 * 1024
"""A longer line is reported and left out without being held."""

MAX_JS_MS: Final = 8_640_000_000_000_000
"""The last millisecond that a JavaScript date can hold (ECMA-262)."""

_MARKS = (
    (b"\xff\xfe", "it is UTF-16 text", "Save it as UTF-8."),
    (b"\xfe\xff", "it is UTF-16 text", "Save it as UTF-8."),
    (b"\x1f\x8b", "it is compressed (gzip)", "Unpack it first."),
    (b"PK\x03\x04", "it is a zip archive", "Unpack it first and give the file inside."),
    (b"SQLite format 3", "it is a database", "Give an exported transcript; a turnfold store is opened by --store."),
)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One JSON value of a file and where it stood."""

    place: str
    value: Any


class BrokenJson(ValueError):
    """Text that is not usable JSON; `reason` says why, `cut` whether it merely breaks off."""

    def __init__(self, reason: str, *, cut: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.cut = reason, cut


def check_start(head: bytes) -> None:
    """Raise TranscriptError when the first bytes show an empty file, another encoding or no text at all."""
    for mark, reason, cure in _MARKS:
        if head.startswith(mark):
            raise TranscriptError("file", reason, cure)
    if b"\x00" in head[:4096]:
        raise TranscriptError("file", "it is not UTF-8 text", "Save it as UTF-8, or give another file.")
    if not head.strip():
        raise TranscriptError("file", "it is empty", "Give a file with at least one message.")


def peek(chunks: Iterable[bytes], size: int = 65536) -> tuple[bytes, Iterator[bytes]]:
    """Return the first bytes (at least `size` where there are so many) and an iterator over all chunks."""
    iterator, held, length = iter(chunks), [], 0
    for piece in iterator:
        held.append(piece)
        length += len(piece)
        if length >= size:
            break
    return b"".join(held), chain(held, iterator)


def lines(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Yield (number from 1, line without its end) for lines that are not blank; None for one over `MAX_LINE_BYTES`.

    Chunks may end anywhere. Memory: the longest line.
    """
    for number, raw in enumerate(_split(chunks), 1):
        line = raw.removeprefix(b"\xef\xbb\xbf") if raw is not None and number == 1 else raw
        if line is None or line.strip():
            yield number, line


def _split(chunks: Iterable[bytes]) -> Iterator[bytes | None]:
    held: list[bytes] = []
    length = 0
    for piece in chunks:
        *whole, rest = piece.split(b"\n")
        for line in whole:
            yield _joined(held, length, line)
            held, length = [], 0
        length += len(rest)
        if length <= MAX_LINE_BYTES:
            held.append(rest)
        else:
            held = []
    if length:
        yield _joined(held, length, b"")


def _joined(held: list[bytes], length: int, last: bytes) -> bytes | None:
    if length + len(last) > MAX_LINE_BYTES:
        return None
    return b"".join([*held, last]) if held else last


def parse(data: bytes) -> tuple[Any, str | None]:
    """Return the JSON value and a note on what had to be repaired, if anything. Raises BrokenJson."""
    note = None
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        value = _parse_slowly(data)
        value, changed = clean(value)
        note = "characters that no UTF-8 text can hold were replaced by U+FFFD" if changed else None
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise BrokenJson(f"it is nested more than {MAX_DEPTH} levels deep")
    return value, note


def _parse_slowly(data: bytes) -> Any:
    """Parse by the tolerant reader, which takes lone surrogates and says better what is wrong."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BrokenJson(f"byte {error.start + 1} is not UTF-8") from None
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise _broken(error, text) from None
    except RecursionError:
        raise BrokenJson(f"it is nested more than {MAX_DEPTH} levels deep") from None
    except ValueError as error:
        raise BrokenJson(str(error)) from None


def _broken(error: json.JSONDecodeError, text: str) -> BrokenJson:
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return BrokenJson("the JSON breaks off before its end", cut=True)
    where = f"line {error.lineno}, column {error.colno}" if "\n" in text.strip() else f"column {error.colno}"
    return BrokenJson(f"it is not JSON ({error.msg.lower()} at {where})")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        nested: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                nested.extend(item.values())
            elif isinstance(item, list):
                nested.extend(item)
        depth += any(isinstance(item, dict | list) for item in level)
        level = nested
    return depth


_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Return the text with every lone surrogate replaced by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def clean(value: Any, depth: int = 0) -> tuple[Any, bool]:
    """Return the value with everything that JSON in UTF-8 cannot carry replaced, and whether text was changed.

    Integers beyond 64 bits become floats, as in JavaScript; infinite numbers become None, as JSON.stringify writes them.
    """
    if depth > MAX_DEPTH:
        raise BrokenJson(f"it is nested more than {MAX_DEPTH} levels deep")
    match value:
        case str():
            text = clean_text(value)
            return text, text != value
        case bool() | None:
            return value, False
        case int():
            return (value if -(2**63) <= value < 2**63 else _float(value)), False
        case float():
            return (value if value - value == 0 else None), False
        case list():
            items = [clean(item, depth + 1) for item in value]
            return [item for item, _ in items], any(changed for _, changed in items)
        case dict():
            pairs = [(clean_text(key), key, clean(item, depth + 1)) for key, item in value.items()]
            changed = any(new != old or touched for new, old, (_, touched) in pairs)
            return {new: item for new, _, (item, _) in pairs}, changed
        case _:
            raise BrokenJson(f"a {type(value).__name__} is not JSON")


def _float(value: int) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def keep(value: Any) -> Any:
    """Return an unknown value in a form that every store and encoder can carry (see `clean`)."""
    return clean(value)[0]


def rows(chunks: Iterable[bytes]) -> Iterator[Row | Problem]:
    """Yield the JSON values of a file: one for each line, or one for a document that spans several lines.

    A broken line gives a Problem with its number, and reading goes on. Raises TranscriptError for what is not text.
    """
    head, chunks = peek(chunks)
    check_start(head)
    if _spans_lines(head):
        yield from _document(chunks)
        return
    for number, line in lines(chunks):
        yield from one_row(f"line {number}", line)


def _spans_lines(head: bytes) -> bool:
    """Whether the file is one document over several lines: its first line breaks off where a value was to follow."""
    first, _, rest = head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")
    if not rest.strip():
        return False
    if first.strip() in (b"[", b"{"):
        return True
    try:
        parse(first)
    except BrokenJson as error:
        return error.cut and first.rstrip()[-1:] in (b"[", b"{", b",", b":", b"}", b"]", b'"') and not _is_object(rest)
    return False


def _is_object(rest: bytes) -> bool:
    """Whether the first of the remaining lines is a JSON object of its own, as in JSON Lines."""
    try:
        return isinstance(parse(rest.lstrip().partition(b"\n")[0])[0], dict)
    except BrokenJson:
        return False


def _document(chunks: Iterable[bytes]) -> Iterator[Row | Problem]:
    data = b"".join(chunks).removeprefix(b"\xef\xbb\xbf")
    yield from one_row("document", data)


def one_row(place: str, data: bytes | None) -> Iterator[Row | Problem]:
    """Yield the value of one line or document, after a note on repairs; a problem when it is not usable."""
    if data is None:
        yield Problem(place=place, reason=f"it is longer than {MAX_LINE_BYTES} bytes", cure="Split it or remove it.")
        return
    try:
        value, note = parse(data)
    except BrokenJson as error:
        yield Problem(place=place, reason=error.reason, cure="Repair it or remove it.")
        return
    if note:
        yield Problem(place=place, reason=note, level="note")
    yield Row(place=place, value=value)


def epoch_ms(value: Any, *, unit: int = 1) -> int | None:
    """Return a point in time as UTC ms, or None when it is not one.

    In: ISO 8601 text (no zone means UTC), or a number counted in `unit` ms (1,000 for seconds).
    """
    if isinstance(value, str):
        return _iso_ms(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not abs(value) <= MAX_JS_MS / unit:
        return None
    return round(value * unit)


def _iso_ms(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text.strip())
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return round((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000)
    except (ValueError, OverflowError):
        return None


def extras(value: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Return the fields of `value` that are not `known`, made safe to keep."""
    return {clean_text(key): keep(item) for key, item in value.items() if key not in known}


def text_of(value: Any) -> str | None:
    """Return the value when it is text that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def count_of(value: Any) -> int:
    """Return a count from untrusted JSON: 0 for anything that is not a number from 0 to 2**53."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2**53:
        return 0
    return int(value)
