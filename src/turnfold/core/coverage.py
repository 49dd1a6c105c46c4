"""Choosing passages that together say most in few tokens: greedy cover with diminishing returns.

The gain of a passage is the information of its terms not yet said by a chosen one, over its cost. Saying a term again
is worth a small part of saying it first, so gains only fall, and a heap with lazy updates finds each next choice
without looking at the rest: about n log n for n passages, and no passage is compared with another.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import msgspec

REPEAT = 0.15
"""Worth of saying a term again, as a share of the time before."""

PATIENCE = 40
"""After so many passages that do not fit, what is left of the budget is left."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A passage to choose. `terms` pairs each of its terms, once, with its worth, `cost` is in tokens, `opening` the tokens that the first
    chosen passage of its `block` adds (the speaker's label).
    """

    terms: tuple[tuple[str, float], ...]
    cost: float
    block: int
    opening: float = 0.0
    factor: float = 1.0


class Cover:
    """A choice that grows: each `take` spends more and keeps what was said in mind. Equal input, equal choice."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        numbers: dict[str, int] = {}
        self._terms = [
            [(numbers.setdefault(term, len(numbers)), value * candidate.factor) for term, value in candidate.terms]
            for candidate in candidates
        ]
        self._share = [1.0] * len(numbers)  # what saying a term once more is worth, of what the first time was
        self._block = [candidate.block for candidate in candidates]
        self._cost = [(candidate.cost + candidate.opening) or 1.0 for candidate in candidates]
        self._cost_in_open_block = [candidate.cost or 1.0 for candidate in candidates]
        self._closed: dict[int, list[int]] = {}
        for index, block in enumerate(self._block):
            self._closed.setdefault(block, []).append(index)
        self._taken: set[int] = set()
        self._heap = self._heap_of(range(len(candidates)))

    def take(self, budget: float, among: Iterable[int] | None = None, most: int | None = None) -> list[int]:
        """Choose from `among` (default: all) at most `budget` tokens and `most` passages; return them as chosen."""
        if among is not None:
            return self._take(self._heap_of(among), budget, most)
        return self._take(self._heap, budget, most)

    def _heap_of(self, indexes: Iterable[int]) -> list[tuple[float, int]]:
        heap = [(-self._gain(index), index) for index in indexes if index not in self._taken]
        heapq.heapify(heap)
        return heap

    def _take(self, heap: list[tuple[float, int]], budget: float, most: int | None) -> list[int]:
        cost, taken = self._cost, self._taken
        chosen: list[int] = []
        too_big: list[tuple[float, int]] = []
        while heap and len(too_big) < PATIENCE and (most is None or len(chosen) < most):
            stale, index = heapq.heappop(heap)
            if index in taken:
                continue
            gain = self._gain(index)
            if gain <= 0.0:
                continue
            if gain < -stale and heap and gain < -heap[0][0]:
                heapq.heappush(heap, (-gain, index))
            elif cost[index] > budget:
                too_big.append((-gain, index))
            else:
                budget -= cost[index]
                chosen.append(index)
                self._choose(index)
        for entry in too_big:
            heapq.heappush(heap, entry)
        return chosen

    def _gain(self, index: int) -> float:
        share = self._share
        worth = 0.0
        for number, value in self._terms[index]:
            worth += value * share[number]
        return worth / self._cost[index]

    def _choose(self, index: int) -> None:
        """Record a choice. Its block is open now, so the gains of its neighbours rise: they enter the heap again."""
        self._taken.add(index)
        for number, _ in self._terms[index]:
            self._share[number] *= REPEAT
        for sibling in self._closed.pop(self._block[index], ()):
            self._cost[sibling] = self._cost_in_open_block[sibling]
            if sibling not in self._taken:
                heapq.heappush(self._heap, (-self._gain(sibling), sibling))
