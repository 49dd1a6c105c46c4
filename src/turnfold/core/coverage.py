"""Choosing passages that together say most in few tokens: greedy cover with diminishing returns.

The gain of a passage is the information of its terms not yet said by a chosen one, over its cost. Saying a term again
is worth a small part of saying it first, so gains only fall, and a heap with lazy updates finds each next choice
without looking at the rest: about n log n for n passages, and no passage is compared with another.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import msgspec

REPEAT = 0.15
"""Worth of saying a term again, as a share of the time before."""


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
        self._candidates = candidates
        self._worth: dict[str, float] = {}  # of saying a term once more, as a share of the first time
        self._blocks: set[int] = set()
        self._siblings: dict[int, list[int]] = {}
        self._taken: set[int] = set()
        for index, candidate in enumerate(candidates):
            self._siblings.setdefault(candidate.block, []).append(index)

    def take(self, budget: float, among: Sequence[int] | None = None, most: int | None = None) -> list[int]:
        """Choose from `among` (default: all) at most `budget` tokens and `most` passages; return them as chosen."""
        pool = range(len(self._candidates)) if among is None else among
        allowed = None if among is None else frozenset(among)
        heap = [(-self._gain(index), index) for index in pool if index not in self._taken]
        heapq.heapify(heap)
        chosen: list[int] = []
        while heap and (most is None or len(chosen) < most):
            stale, index = heapq.heappop(heap)
            if index in self._taken:
                continue
            gain = self._gain(index)
            if gain <= 0.0:
                continue
            if gain < -stale and heap and gain < -heap[0][0]:
                heapq.heappush(heap, (-gain, index))
                continue
            cost = self._cost(index)
            if cost <= budget:
                budget -= cost
                chosen.append(index)
                self._choose(index, heap, allowed)
        return chosen

    def _gain(self, index: int) -> float:
        candidate = self._candidates[index]
        share = self._worth.get
        worth = sum([value * share(term, 1.0) for term, value in candidate.terms])
        return candidate.factor * worth / (self._cost(index) or 1.0)

    def _cost(self, index: int) -> float:
        candidate = self._candidates[index]
        return candidate.cost if candidate.block in self._blocks else candidate.cost + candidate.opening

    def _choose(self, index: int, heap: list[tuple[float, int]], allowed: frozenset[int] | None) -> None:
        """Record a choice. Its block is open now, so the gains of its neighbours rise: they enter the heap again."""
        candidate = self._candidates[index]
        self._taken.add(index)
        for term, _ in candidate.terms:
            self._worth[term] = self._worth.get(term, 1.0) * REPEAT
        if candidate.block in self._blocks:
            return
        self._blocks.add(candidate.block)
        for sibling in self._siblings[candidate.block]:
            if sibling not in self._taken and (allowed is None or sibling in allowed):
                heapq.heappush(heap, (-self._gain(sibling), sibling))
