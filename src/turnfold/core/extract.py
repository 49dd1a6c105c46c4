"""The extractive summary: whole sentences with their speakers, chosen to cover what only they say. No model, no chance.

The body leaves room for what every summary must keep (`retention`), so that completing it cuts nothing off. Cost is
close to linear in the text: each passage is read once, counted once, and chosen by `Cover`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain, groupby

import msgspec

from turnfold.core.coverage import Candidate, Cover
from turnfold.core.identifiers import KIND_WEIGHTS, Mention, mentions
from turnfold.core.passage import EARLIER, Passage
from turnfold.core.passages import conversation_language, passages_of, tidy
from turnfold.core.plan import SummaryRequest
from turnfold.core.retention import Obligations, complete_summary, obligations, room_for_body
from turnfold.core.sections import HEADINGS, Section, heading, layout
from turnfold.core.text.commonness import information
from turnfold.core.text.terms import terms
from turnfold.core.tool_passages import is_changed_label, is_file_label

CountText = Callable[[str], int]

_WIDE_STOPS = frozenset("。！？；…」』）】")
_STOPS = frozenset(".!?;:…)\"'”’")

HEADINGS_FROM = 150
"""Tokens: a smaller summary has no room for headings."""
GOALS_SHARE, GOALS_MOST = 0.1, 5
STATE_SHARE, STATE_MOST = 0.12, 4
FILES_SHARE, FILES_MOST = 0.08, 30
IDENTIFIER = 1.5
"""What an identifier of weight 1 is worth beside a word."""
RETURNING, RETURNING_MOST = 0.3, 8
"""What a term gains by each e-fold of passages that hold it, and after how many it is merely a common word: a conversation
comes back to what it is about."""
_RETURNS = [1.0, *(1.0 + RETURNING * math.log(times) for times in range(1, RETURNING_MOST + 1))]
FOCUS = 2.0
"""How much a term of the caller's focus counts against another one."""


def extract(request: SummaryRequest, count_text: CountText) -> str:
    """Return the summary for `request`, completed with standing instructions and lookup hints, at most `max_tokens` under
    `count_text` and `max_chars` characters.

    Equal requests give equal text. Empty only where nothing was said or nothing fits.
    """
    owed = obligations(request.messages)
    body = _Extract(request, owed, count_text).text()
    text, _ = complete_summary(
        body,
        request.messages,
        previous_summary=request.previous_summary,
        max_tokens=request.max_tokens,
        max_chars=request.max_chars,
        count_text=count_text,
        owed=owed,
    )
    return text


def joined(texts: Sequence[str]) -> str:
    """Return sentences as running text: a blank between them, none after a full-width stop, a semicolon after none."""
    pieces: list[str] = []
    for text, following in zip(texts, (*texts[1:], None), strict=True):
        pieces.append(text)
        if following is not None:
            pieces.append("" if text[-1:] in _WIDE_STOPS else " " if text[-1:] in _STOPS else "; ")
    return "".join(pieces)


def _unique(passages: Sequence[Passage]) -> list[Passage]:
    """Drop passages that say a passage before them again, word for word."""
    seen: set[tuple[str, str]] = set()
    kept: list[Passage] = []
    for passage in passages:
        key = (passage.speaker, passage.text)
        if key not in seen:
            seen.add(key)
            kept.append(passage)
    return kept


class _Extract:
    def __init__(self, request: SummaryRequest, owed: Obligations, count_text: CountText) -> None:
        self._request = request
        self._owed = owed
        self._language = conversation_language(request.messages, request.previous_summary)
        self._passages = _unique(passages_of(request.messages, request.previous_summary, self._language))
        self._technical = any(message.role == "tool" for message in request.messages)
        self._count = count_text
        self._sections: dict[int, Section] = {}
        self._chosen: list[int] = []
        self._cover = Cover(self._candidates())
        self._limits = request.max_tokens, request.max_chars

    def text(self) -> str:
        """Choose what fits beside instructions; where identifiers are missing then, give up choices for hints at them."""
        self._limits = self._room("")
        self._choose()
        text = self._fill()
        room = self._room(text)
        if room < self._limits:
            self._limits = room
            text = self._fit()
        return text or self._clipped()

    def _room(self, body: str) -> tuple[int, int]:
        request = self._request
        return room_for_body(
            body,
            request.messages,
            previous_summary=request.previous_summary,
            max_tokens=request.max_tokens,
            max_chars=request.max_chars,
            count_text=self._count,
            owed=self._owed if body else msgspec.structs.replace(self._owed, identifiers=()),
        )

    def _choose(self) -> None:
        """Choose the goals, then the state, which a choice by worth alone would miss."""
        limit = self._limits[0]
        self._with_headings = limit >= HEADINGS_FROM
        self._left = float(limit - self._heading_cost())
        if self._with_headings:
            self._left -= self._take(self._goals(), self._left, GOALS_SHARE, GOALS_MOST, "goals")
            self._left -= self._take(self._files_changed(), self._left, FILES_SHARE, FILES_MOST, "details")
            if self._request.mode == "all":
                self._left -= self._take(self._closing(), self._left, STATE_SHARE, STATE_MOST, "state")

    def _fill(self) -> str:
        """Choose by worth until the limits are reached; what a rendered text turns out to leave is chosen for again."""
        text = ""
        for _ in range(4):
            self._chosen.extend(self._cover.take(max(self._left, 0.0)))
            text = self._fit()
            self._left = self._limits[0] - self._count(text)
            if self._left < self._limits[0] * 0.01 or len(text) > self._limits[1] * 0.98:
                break
        return text

    def _candidates(self) -> list[Candidate]:
        focus = frozenset(terms(self._request.focus or ""))
        given = {tidy(instruction) for instruction in self._owed.instructions}
        worths = [{} if passage.text in given else self._worth(passage) for passage in self._passages]
        times = Counter(chain.from_iterable(worths))
        weight = {term: _RETURNS[min(count, RETURNING_MOST)] for term, count in times.items()}
        weight.update({term: weight[term] * FOCUS for term in focus if term in weight})
        label_cost = lru_cache(lambda speaker: float(self._count(f"\n{speaker}: ")))
        return [
            Candidate(
                terms=tuple([(term, value * weight[term]) for term, value in worth.items()]),
                cost=self._cost(passage) if worth else 1.0,
                block=passage.message,
                opening=label_cost(passage.speaker),
                factor=passage.factor * (FOCUS if focus and not focus.isdisjoint(worth) else 1.0),
            )
            for passage, worth in zip(self._passages, worths, strict=True)
        ]

    def _cost(self, passage: Passage) -> float:
        """Tokens, or what the passage takes of the characters where they are scarcer."""
        per_char = self._request.max_tokens / max(self._request.max_chars, 1)
        return max(float(self._count(" " + passage.text)), len(passage.text) * per_char)

    def _worth(self, passage: Passage) -> dict[str, float]:
        """What each term of a passage is worth; an identifier counts beside the words that it is made of."""
        words = terms(passage.text)
        worth = {term: value for term, value in zip(words, map(information, words), strict=True) if value}
        for mention in self._mentions(passage):
            worth["\0" + mention.key] = IDENTIFIER * KIND_WEIGHTS[mention.kind]
        return worth

    def _mentions(self, passage: Passage) -> Iterable[Mention]:
        """The identifiers in a passage: those of its message that occur in it."""
        if passage.message <= EARLIER:
            return mentions(passage.text)
        return [mention for mention in self._owed.mentions[passage.message] if mention.key in passage.text]

    def _take(self, among: list[int], room: float, share: float, most: int, section: Section) -> float:
        before = room * share
        taken = self._cover.take(before, among, most)
        self._sections.update(dict.fromkeys(taken, section))
        self._chosen.extend(taken)
        return float(self._count(self._render(taken))) if taken else 0.0

    def _goals(self) -> list[int]:
        """What users want, and what they began with."""
        passages = self._passages
        first = next((passage.message for passage in passages if self._speaks(passage)), None)
        return [
            index
            for index, passage in enumerate(passages)
            if passage.wish or passage.section == "goals" or (passage.message == first and self._technical)
        ]

    def _files_changed(self) -> list[int]:
        return [index for index, passage in enumerate(self._passages) if is_changed_label(passage.speaker)]

    def _closing(self) -> list[int]:
        """What was said last: passages of the last two messages that speak."""
        spoken = [index for index, passage in enumerate(self._passages) if self._speaks(passage)]
        last = sorted({self._passages[index].message for index in spoken})[-2:]
        return [index for index in spoken if self._passages[index].message in last]

    @staticmethod
    def _speaks(passage: Passage) -> bool:
        return passage.message > EARLIER and not passage.alone and not is_file_label(passage.speaker)

    def _heading_cost(self) -> int:
        if not self._with_headings:
            return 0
        used: set[Section] = {passage.section for passage in self._passages} | {"goals"}
        if self._request.mode == "all":
            used.add("state")
        return sum(self._count(heading(section, self._language) + "\n") for section in sorted(used))

    def _fit(self) -> str:
        """Return the text of what is chosen, the last choices given up until it is within both limits."""
        text = self._render(self._chosen)
        while self._chosen and not self._fits(text):
            over = max(self._count(text) - self._limits[0], 1)
            while self._chosen and over > 0:
                over -= self._count(self._passages[self._chosen.pop()].text)
            text = self._render(self._chosen)
        return text

    def _fits(self, text: str) -> bool:
        return self._count(text) <= self._limits[0] and len(text) <= self._limits[1]

    def _render(self, chosen: Sequence[int]) -> str:
        """One line for consecutive passages of one speaker, under the headings or (tiny budgets) without."""
        ordered = sorted(chosen)
        sections = {index: self._sections.get(index, self._passages[index].section) for index in ordered}
        if not self._with_headings:
            return "\n".join(line for line in self._lines(ordered))
        return layout(
            [
                (section, line)
                for section in HEADINGS[self._language]
                for line in self._lines([index for index in ordered if sections[index] == section])
            ],
            self._language,
        )

    def _lines(self, ordered: list[int]) -> list[str]:
        lines = []
        for (speaker, _), indexes in groupby(ordered, self._line_of):
            said = joined([self._passages[index].text for index in indexes])
            lines.append(f"{speaker}: {said}" if speaker else said)
        return lines

    def _line_of(self, index: int) -> tuple[str, int]:
        """Passages of one key stand on one line when they follow each other."""
        passage = self._passages[index]
        return passage.speaker, index if passage.alone else -1

    def _clipped(self) -> str:
        """For limits below any whole sentence: the beginning of the most telling passage."""
        best = self._cover.take(float("inf"), most=1)
        text = self._passages[best[0]].text[: self._limits[1]] if best else ""
        while text and self._count(text) > self._limits[0]:
            text = text[: len(text) * 3 // 4]
        return text
