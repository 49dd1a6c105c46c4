"""Making text shorter without lying about it: middle truncation of transcripts, the length bound of summaries.

Characters are UTF-16 code units everywhere here, as in the system whose cuts these are held equal to; a character
outside the basic plane counts two and is never cut in half in text that is sent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

import msgspec

SUMMARY_SUFFIX = "... [summary truncated to fit]"
LADDER = (120_000, 90_000, 60_000, 40_000, 25_000, 15_000, 10_000, 6_000, 4_000, 2_000)
"""Characters of transcript to retry with, one after another, when the summarizer's own window overflows (SPEC §6)."""

KEPT_SHARE = 0.3
"""Share of the limit that middle truncation keeps at each end (SPEC §6)."""

DEFAULT_CLIP_CHARS = 50_000
MIN_SUMMARY_CHARS = 200
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*(?=\s)|[。！？；｡][”’」』）)]*|\n")
_WORD_END = re.compile(r"\s|[,，、;；:：](?!\d)")


def utf16_length(text: str) -> int:
    """Return the number of UTF-16 code units, JavaScript's `length`."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def utf16_head(text: str, units: int) -> str:
    """Return the longest start of `text` of at most `units` code units; a character is never cut in half."""
    if units <= 0:
        return ""
    if len(text) * 2 <= units or text[: units + 1].isascii():
        return text[:units]
    return text[: units + 1].encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "ignore")


def utf16_slice(text: str, units: int) -> str:
    """Return the first `units` code units exactly, half a character at the end included."""
    data = text[: max(0, units)].encode("utf-16-le", "surrogatepass")
    return data[: 2 * max(0, units)].decode("utf-16-le", "surrogatepass")


def utf16_tail(text: str, units: int) -> str:
    """Return the longest end of `text` of at most `units` code units; a character is never cut in half."""
    if units <= 0:
        return ""
    if len(text) * 2 <= units or text[-units:].isascii():
        return text[-units:]
    return text[-units:].encode("utf-16-le", "surrogatepass")[-2 * units :].decode("utf-16-le", "ignore")


class MiddleCut(msgspec.Struct, frozen=True, kw_only=True):
    """Text without its middle: `dropped` characters are missing between `head` and `tail`."""

    head: str
    tail: str
    dropped: int


def kept_at_each_end(max_chars: int) -> int:
    """Return how many characters middle truncation to `max_chars` keeps at each end."""
    return max(0, math.floor(max_chars * KEPT_SHARE))


def middle_cut(text: str, max_chars: int) -> MiddleCut | None:
    """Return the ends of a text longer than `max_chars`, or None when it stays as it is; a limit of 0 or less is none.

    Exact to the code unit, so an end may hold half a character; `core.excerpt` cuts transcripts that are sent.
    """
    length, kept = utf16_length(text), kept_at_each_end(max_chars)
    if length <= max_chars or max_chars <= 0:
        return None
    tail = text.encode("utf-16-le", "surrogatepass")[2 * (length - kept) :].decode("utf-16-le", "surrogatepass")
    return MiddleCut(head=utf16_slice(text, kept), tail=tail, dropped=length - 2 * kept)


def ladder(length: int) -> tuple[int, ...]:
    """Return the limits that would shorten a transcript of `length` characters, largest first."""
    return tuple(step for step in LADDER if step < length)


def summary_char_limit(context_window: int, clip_chars: int = DEFAULT_CLIP_CHARS) -> int:
    """Return how many characters a summary may have: a tenth of the window at four characters a token, at least 200,
    at most `clip_chars` (SPEC §6).
    """
    return max(MIN_SUMMARY_CHARS, min(clip_chars, math.floor(context_window * 4 * 0.1)))


def bound_summary(text: str, max_chars: int, max_tokens: int, count_text: Callable[[str], int]) -> tuple[str, bool]:
    """Return (text, whether it was cut) with at most `max_chars` characters and `max_tokens` tokens, suffix included.

    Tokens win. The cut is at a sentence's end where that keeps at least half of what fits, else between words. A limit
    too small for the suffix gets none.
    """
    if utf16_length(text) <= max_chars and count_text(text) <= max_tokens:
        return text, False
    for suffix in (SUMMARY_SUFFIX, ""):
        fitting = _longest_fitting(text, suffix, max_chars, max_tokens, count_text)
        if fitting:
            return fitting + suffix, True
    return "", True


def _longest_fitting(text: str, suffix: str, max_chars: int, max_tokens: int, count_text: Callable[[str], int]) -> str:
    """Return the longest well-ended start of `text` that fits together with `suffix`."""
    room = utf16_head(text, max_chars - utf16_length(suffix))
    low, high = 0, len(room)
    while low < high:  # largest length whose count fits; counts grow with length but for a token or two
        middle = (low + high + 1) // 2
        if count_text(room[:middle] + suffix) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    ended = clip_at_sentence(room, low)
    while ended and count_text(ended + suffix) > max_tokens:
        ended = clip_at_sentence(ended, len(ended) - 1)
    return ended


def clip_at_sentence(text: str, length: int) -> str:
    """Return at most `length` code points of `text`: up to the last sentence's end in the second half, else the last
    word's end there, else exactly. Blanks at the end go.
    """
    if length >= len(text):
        return text.rstrip()
    for ending in (_SENTENCE_END, _WORD_END):
        at = _last_end(ending, text, length)
        if at > length // 2:
            return text[:at].rstrip()
    return text[:length].rstrip().rstrip("\u200d\ufe0f")


def _last_end(ending: re.Pattern[str], text: str, length: int) -> int:
    """Index after the last match that ends at or before `length`, or 0. Looks at the second half only."""
    ends = [match.end() for match in ending.finditer(text, length // 2, min(len(text), length + 1))]
    return max((end for end in ends if end <= length), default=0)


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return names joined by commas, the first `most` of them and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
