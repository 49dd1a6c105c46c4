"""Order of recall hits: which messages say most of what was asked, with what was said just before and after them.

BM25 over the terms of a message, and what its neighbours add: in talk the words of a question often stand in the turn
before the answer. A name counts more where its bearer speaks, and nothing where the neighbour does. Words that stand
side by side in the query count more where they do so in the message. Equal scores: the newer first.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

from turnfold.core.recall_query import Query
from turnfold.core.speakers import named_prefix
from turnfold.core.text.terms import identifier_terms, index_terms, sequence, terms

K1, B = 0.6, 0.5
"""BM25: talk repeats itself little and its messages are of one kind, so repetition and length count less than in prose."""
BEFORE_WEIGHTS, AFTER_WEIGHTS = (0.5, 0.2), (0.3,)
"""Share of a neighbour's worth, the nearest first, where the message itself says less."""
ASKING_WEIGHT = 0.3
"""What is added to the share of the message just before when it asks: then this one answers."""
SPEAKER_WEIGHT = 2.0
SIDE_BY_SIDE = 0.2
"""Share of the rarer of two terms that is added where they stand together as in the query."""
READ_CHARS, HEAD_CHARS, AROUND_CHARS, OCCURRENCES = 16_000, 4_000, 240, 3
"""Of a longer message its head is read, and the surroundings of each term's first occurrences."""
FULLY_JUDGED = 600
"""Rows whose neighbours are looked at when the most promising are chosen; of more, those that say most themselves."""
LEAST = 1e-6
"""Score of a hit that the index vouches for where the part of the text that was read does not show it."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A message that the index found: its searchable text and its neighbours' texts, on both sides the nearest first.

    `newness` orders equals: the greater, the earlier.
    """

    text: str
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    newness: tuple[int, ...] = ()


class _Said(msgspec.Struct, frozen=True):
    """The query's terms in one text: how often each, the number of all terms, the speaker's, and those side by side."""

    counts: Mapping[str, int]
    length: int
    speaker: frozenset[str]
    asks: bool
    together: frozenset[tuple[str, str]]


def rarity(query: Query, frequencies: Mapping[str, int], population: int) -> dict[str, float]:
    """Return what each term and prefix of the query (`port*`) is worth: the rarer the more.

    `frequencies` says in how many of the `population` messages each occurs; those that occur nowhere are left out.
    """
    weights = {**query.weights, **{f"{prefix}*": 1.0 for prefix in query.prefixes}}
    found = ((term, weight, frequencies.get(term, 0)) for term, weight in weights.items())
    return {term: weight * _idf(frequency, population) for term, weight, frequency in found if frequency}


def _idf(frequency: int, population: int) -> float:
    return math.log(1 + (max(population, frequency) - frequency + 0.5) / (frequency + 0.5))


def preselect(places: Mapping[str, Sequence[int]], worth: Mapping[str, float], most: int) -> list[int]:
    """Return the row numbers to look at closer, the most promising first.

    `places` gives each term's rows. Numbers next to each other are taken for neighbours, which they mostly are.
    """
    values = [worth.get(term, 0.0) for term in places]
    held: dict[int, int] = {}
    for bit, rows in enumerate(places.values()):
        for row in rows:
            held[row] = held.get(row, 0) | 1 << bit
    sums: dict[int, float] = {}

    def total(bits: int) -> float:
        found = sums.get(bits)
        if found is None:
            found = sums[bits] = sum(value for at, value in enumerate(values) if bits >> at & 1)
        return found

    def promise(row: int) -> float:
        bits, get = held[row], held.get
        before = BEFORE_WEIGHTS[0] * total(get(row - 1, 0) & ~bits) + BEFORE_WEIGHTS[1] * total(get(row - 2, 0) & ~bits)
        return total(bits) + before + AFTER_WEIGHTS[0] * total(get(row + 1, 0) & ~bits)

    chosen: Iterable[int] = held
    if len(held) > FULLY_JUDGED:
        chosen = heapq.nlargest(FULLY_JUDGED, held, key=lambda row: (total(held[row]), row))
    return heapq.nlargest(most, chosen, key=lambda row: (promise(row), row))


def rank(query: Query, candidates: Sequence[Candidate], worth: Mapping[str, float]) -> list[tuple[int, float]]:
    """Return (index, score) of the candidates that are hits, the best first."""
    reading = _Reading(query, worth)
    said = [reading.own(candidate.text) for candidate in candidates]
    usual = max(1.0, sum(each.length for each in said) / max(1, len(said)))
    scores = [
        (index, _score(query, candidate, own, reading, worth, usual))
        for index, (candidate, own) in enumerate(zip(candidates, said, strict=True))
    ]
    hits = [(index, round(score, 6)) for index, score in scores if score > 0]
    return sorted(hits, key=lambda hit: (-hit[1], [-n for n in candidates[hit[0]].newness]))


def _score(
    query: Query, candidate: Candidate, own: _Said, reading: _Reading, worth: Mapping[str, float], usual: float
) -> float:
    if not all(_holds(candidate.text, phrase) for phrase in query.phrases):
        return 0.0
    if not own.counts:
        return LEAST if len(candidate.text) > READ_CHARS else 0.0
    values = _values(own, worth, usual)
    score = sum(values.values()) + SIDE_BY_SIDE * sum(min(worth[one], worth[two]) for one, two in own.together)
    for weights, texts in ((BEFORE_WEIGHTS, candidate.before), (AFTER_WEIGHTS, candidate.after)):
        for share, text in zip(weights, texts, strict=False):
            near = reading.heard(text)
            asked = ASKING_WEIGHT if near.asks and share == BEFORE_WEIGHTS[0] else 0.0
            for term, value in _values(near, worth, usual).items():
                if term not in near.speaker:
                    score += (share + asked) * max(0.0, value - values.get(term, 0.0))
    return score


def _values(said: _Said, worth: Mapping[str, float], usual: float) -> dict[str, float]:
    """Return BM25's value of each term said."""
    norm = K1 * (1 - B + B * said.length / usual)
    return {
        term: worth[term] * count * (K1 + 1) / (count + norm) * (SPEAKER_WEIGHT if term in said.speaker else 1.0)
        for term, count in said.counts.items()
    }


class _Reading:
    """What texts say of one query; a text that is read twice, as two messages' neighbour, is read once."""

    def __init__(self, query: Query, worth: Mapping[str, float]) -> None:
        self._worth, self._pairs = worth, query.pairs
        self._prefixes = [term for term in worth if term.endswith("*")]
        self._single = any(len(term) == 1 and not term.isascii() for term in worth)
        self._heard: dict[str, _Said] = {}

    def own(self, text: str) -> _Said:
        """A message: its words, its identifiers, and which words of the query stand side by side."""
        worth, read = self._worth, readable_part(text, self._worth)
        words = terms(read)
        found = index_terms(read) if self._single else [*words, *identifier_terms(read)]
        beside = set(pairwise(words)) if self._pairs else ()
        together = frozenset(pair for pair in self._pairs if pair[0] in worth and pair[1] in worth and pair in beside)
        return self._counted(read, len(words), found, together)

    def heard(self, text: str) -> _Said:
        """A neighbour: its words alone."""
        said = self._heard.get(text)
        if said is None:
            read = text[:READ_CHARS]
            words = terms(read)
            said = self._heard[text] = self._counted(read, len(words), words, frozenset())
        return said

    def _counted(self, read: str, length: int, found: Sequence[str], together: frozenset[tuple[str, str]]) -> _Said:
        counts = {term: found.count(term) for term in self._worth.keys() & found}
        for prefix in self._prefixes:
            matching = sum(word.startswith(prefix[:-1]) for word in found)
            if matching:
                counts[prefix] = matching
        name = named_prefix(read[:40]) if counts else None
        asks = "?" in read or "？" in read
        return _Said(counts, length, frozenset(terms(name)) if name else frozenset(), asks, together)


def _holds(text: str, phrase: tuple[str, ...]) -> bool:
    """Whether the words of the phrase stand in the text one after the other."""
    words = sequence(readable_part(text, dict.fromkeys(phrase, 1.0)))
    first, size = phrase[0], len(phrase)
    return any(word == first and words[at : at + size] == phrase for at, word in enumerate(words))


def readable_part(text: str, wanted: Iterable[str]) -> str:
    """Return a text that is not too long to read: the head of a longer one, and what stands around the wanted terms."""
    if len(text) <= READ_CHARS:
        return text
    lowered, pieces = text.lower(), [text[:HEAD_CHARS]]
    for term in wanted:
        root = term.rstrip("*")[: max(3, len(term) - 1)]
        at = HEAD_CHARS - AROUND_CHARS
        for _ in range(OCCURRENCES):
            at = lowered.find(root, at)
            if at < 0:
                break
            pieces.append(text[max(0, at - AROUND_CHARS) : at + AROUND_CHARS])
            at += AROUND_CHARS
    return "\n".join(pieces)[: 4 * READ_CHARS]
