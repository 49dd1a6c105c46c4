"""An index in plain values: terms to the texts that hold them. For stores in memory, and for checking lookup hints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from turnfold.core.ranking import preselect, rarity
from turnfold.core.recall_query import Query
from turnfold.core.text.terms import index_terms


class Promising(NamedTuple):
    """Numbers to look at closer, the most promising first, and what each of the query's terms is worth."""

    numbers: list[int]
    worth: dict[str, float]


class TermIndex:
    """Texts by number, each found by its terms. Numbers next to each other are taken for neighbours."""

    def __init__(self) -> None:
        self._places: dict[str, list[int]] = {}
        self._count = 0

    def add(self, number: int, text: str) -> None:
        """Index a text; a number is given once."""
        self._count += 1
        for term in dict.fromkeys(index_terms(text)):
            self._places.setdefault(term, []).append(number)

    def remove(self, numbers: Iterable[int]) -> None:
        """Forget texts, and the terms that no other text holds."""
        gone = frozenset(numbers)
        self._count -= len(gone)
        kept = ((term, [n for n in places if n not in gone]) for term, places in self._places.items())
        self._places = {term: places for term, places in kept if places}

    def promising(self, query: Query, most: int, admits: Callable[[int], bool] = lambda _: True) -> Promising:
        """Return at most `most` numbers, among those admitted."""
        places = {term: [n for n in self._places.get(term, ()) if admits(n)] for term in query.weights}
        for prefix in query.prefixes:
            places[f"{prefix}*"] = [n for n in self._starting_with(prefix) if admits(n)]
        worth = rarity(query, {term: len(rows) for term, rows in places.items()}, self._count)
        return Promising(preselect(places, worth, most), worth)

    def _starting_with(self, prefix: str) -> Sequence[int]:
        found = (places for term, places in self._places.items() if term.startswith(prefix))
        return sorted({number for places in found for number in places})
