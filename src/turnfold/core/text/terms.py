"""The project's one notion of a word: text -> terms, for coverage in summaries and for recall's index and queries alike.

A word of a spaced script is one lower-case, accent-free, lightly stemmed term. A run of Chinese, Japanese or Korean
gives its overlapping pairs of characters, so that two-character words such as 端口 match exactly; a run of one
character gives that character. An index holds besides: identifiers whole and in pieces, and every such character alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from turnfold.core.text.scripts import CJK

MAX_TERM = 64
"""Characters of a term; the rest of a longer word (base64, a blob) says nothing more."""

_MARKS = "\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0981-\u0983\u09bc-\u09cd\u0e31-\u0e4e"
"""Marks that are part of a word but no letters to `re`: accents, Hebrew, Arabic, Devanagari, Bengali and Thai vowels."""

_RUN = re.compile(f"(?P<cjk>[{CJK}]+)|(?:[^\\W_{CJK}][{_MARKS}]*)+(?:['’][a-z]{{1,2}}\\b)?")
_ASCII_RUN = re.compile(r"[a-z0-9]+(?:'[a-z]{1,2}\b)?")
_CJK_CHARACTER = re.compile(f"[{CJK}]")
_COMPOUND = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]++(?:[-_./:@#]{1,3}+[A-Za-z0-9]++)++", re.ASCII)
_OF_PLAIN_WORDS = re.compile(r"[A-Za-z-]++\Z", re.ASCII)
_MIXED_CASE = re.compile(r"\b[A-Z0-9]*+[a-z0-9]++[A-Z][A-Za-z0-9]*+", re.ASCII)
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_DOUBLED = re.compile(r"([bdgmnprt])\1$")
_VOWEL = re.compile(r"[aeiouy]")


def terms(text: str) -> list[str]:
    """Return the terms of `text`, in order, with repetitions."""
    if text.isascii():
        return list(map(stem, _ASCII_RUN.findall(text.lower())))
    return _mixed_terms(fold(text))


def index_terms(text: str) -> list[str]:
    """Return what an index holds of `text`: `terms(text)`, its identifiers, and each CJK character alone."""
    found = [*terms(text), *identifier_terms(text)]
    return found if text.isascii() else found + _CJK_CHARACTER.findall(fold(text))


def identifier_terms(text: str) -> list[str]:
    """Return identifiers whole (`src/app.py`, `max_retries`, `PR-17`), and the pieces of those in mixed case.

    The pieces of the others are `terms` already. Compounds of plain words (`well-known`) are left to their words.
    """
    wholes = [whole[:MAX_TERM].lower() for whole in _COMPOUND.findall(text) if not _OF_PLAIN_WORDS.match(whole)]
    return wholes + [stem(piece.lower()) for word in _MIXED_CASE.findall(text) for piece in _PIECE.findall(word)]


class Located(NamedTuple):
    """A word, or a single CJK character, and where in the text it stands."""

    term: str
    start: int
    end: int


def located_words(text: str) -> Iterator[Located]:
    """Yield the words and single CJK characters of `text` in order: what phrases and excerpts are found by."""
    for match in _RUN.finditer(text):
        run, start, end = fold(match.group()), match.start(), match.end()
        if match["cjk"] is None:
            yield Located(stem(run.replace("’", "'")), start, end)
        elif len(run) == end - start:
            yield from (Located(char, at, at + 1) for at, char in enumerate(run, start))
        else:  # half-width kana fold to fewer characters: only the run has a place
            yield from (Located(char, start, end) for char in run)


def sequence(text: str) -> tuple[str, ...]:
    """Return the words of `text` one after the other, CJK by single characters: what phrases are compared in."""
    return tuple(located.term for located in located_words(text))


def fold(text: str) -> str:
    """Return `text` with case, width and accents taken away, so that spellings of one word become equal."""
    lowered = text.casefold()
    if lowered.isascii():
        return lowered
    decomposed = unicodedata.normalize("NFKD", lowered)
    bare = "".join(char for char in decomposed if not unicodedata.combining(char) or char in "\u3099\u309a")
    return unicodedata.normalize("NFC", bare)


def _mixed_terms(folded: str) -> list[str]:
    found: list[str] = []
    for match in _RUN.finditer(folded):
        run = match.group()
        if match["cjk"] is None:
            found.append(stem(run.replace("’", "'")))
        elif len(run) == 1:
            found.append(run)
        else:
            found.extend(run[i : i + 2] for i in range(len(run) - 1))
    return found


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return a lower-case word without its English inflection: plural, -ing, -ed, possessive, final e.

    Light on purpose: `banking` and `bank` meet, `universal` and `university` do not.
    """
    word, _, tail = word[:MAX_TERM].partition("'")
    if tail in {"t", "nt"}:
        return word + tail
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    return _final(_without_verb_ending(_singular(word)))


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _without_verb_ending(word: str) -> str:
    for ending in ("ing", "ed"):
        root = word[: -len(ending)]
        if word.endswith(ending) and len(root) >= 3 and _VOWEL.search(root) and not word.endswith("eed"):
            return _DOUBLED.sub(r"\1", root)
    return word


def _final(word: str) -> str:
    if len(word) > 4 and word.endswith("e"):
        return word[:-1]
    if len(word) > 3 and word.endswith("y"):
        return word[:-1] + "i"
    return word
