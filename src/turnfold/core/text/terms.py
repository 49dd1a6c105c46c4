"""The project's one notion of a word: text -> terms, for coverage in summaries and for recall's index and queries alike.

A word of a spaced script is one lower-case, accent-free, lightly stemmed term. A run of Chinese, Japanese or Korean
gives its overlapping pairs of characters, so that two-character words such as 端口 match exactly; a run of one
character gives that character.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from turnfold.core.text.scripts import CJK

MAX_TERM = 64
"""Characters of a term; the rest of a longer word (base64, a blob) says nothing more."""

_RUN = re.compile(f"(?P<cjk>[{CJK}]+)|[^\\W_{CJK}]+(?:['’][a-z]{{1,2}}\\b)?")
_ASCII_RUN = re.compile(r"[a-z0-9]+(?:'[a-z]{1,2}\b)?")
_DOUBLED = re.compile(r"([bdgmnprt])\1$")
_VOWEL = re.compile(r"[aeiouy]")


def terms(text: str) -> list[str]:
    """Return the terms of `text`, in order, with repetitions."""
    if text.isascii():
        return list(map(stem, _ASCII_RUN.findall(text.lower())))
    return _mixed_terms(fold(text), last_single=False)


def index_terms(text: str) -> list[str]:
    """Return `terms(text)` with, after each longer CJK run, its last character alone.

    Every character then begins some term, so a search for one character can be a prefix search over the index.
    """
    return terms(text) if text.isascii() else _mixed_terms(fold(text), last_single=True)


def fold(text: str) -> str:
    """Return `text` with case, width and accents taken away, so that spellings of one word become equal."""
    lowered = text.casefold()
    if lowered.isascii():
        return lowered
    decomposed = unicodedata.normalize("NFKD", lowered)
    bare = "".join(char for char in decomposed if not unicodedata.combining(char) or char in "\u3099\u309a")
    return unicodedata.normalize("NFC", bare)


def _mixed_terms(folded: str, *, last_single: bool) -> list[str]:
    found: list[str] = []
    for match in _RUN.finditer(folded):
        run = match.group()
        if match["cjk"] is None:
            found.append(stem(run.replace("’", "'")))
        elif len(run) == 1:
            found.append(run)
        else:
            found.extend(run[i : i + 2] for i in range(len(run) - 1))
            if last_single:
                found.append(run[-1])
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
