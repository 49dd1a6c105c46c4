"""The extractive summary: whole sentences with their speakers, chosen to cover what only they say. No model, no chance.

Cost is close to linear in the text: each passage is read once, counted once, and chosen by `Cover`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from turnfold.core.coverage import Candidate, Cover
from turnfold.core.identifiers import KIND_WEIGHTS, mentions
from turnfold.core.passages import EARLIER, TOOL, Passage, conversation_language, passages_of
from turnfold.core.plan import SummaryRequest
from turnfold.core.sections import HEADINGS, Section, heading, layout
from turnfold.core.text.commonness import information
from turnfold.core.text.scripts import Language
from turnfold.core.text.terms import terms

CountText = Callable[[str], int]

_WIDE_STOPS = frozenset("。！？；…」』）】")
_STOPS = frozenset(".!?;:…)\"'”’")

HEADINGS_FROM = 150
"""Tokens: a smaller summary has no room for headings."""
GOALS_SHARE, GOALS_MOST = 0.1, 5
STATE_SHARE, STATE_MOST = 0.12, 4
IDENTIFIER = 1.5
"""What an identifier of weight 1 is worth beside a word."""
FOCUS = 2.0
"""How much a term of the caller's focus counts against another one."""


def extract(request: SummaryRequest, count_text: CountText) -> str:
    """Return the summary's body for `request`, at most `max_tokens` under `count_text` and `max_chars` characters.

    Equal requests give equal text. Empty only where nothing was said or nothing fits.
    """
    language = conversation_language(request.messages, request.previous_summary)
    passages = _unique(passages_of(request.messages, request.previous_summary, language))
    return _Extract(request, passages, language, count_text).text()


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
    def __init__(
        self, request: SummaryRequest, passages: list[Passage], language: Language, count_text: CountText
    ) -> None:
        self._request = request
        self._passages = passages
        self._language = language
        self._count = count_text
        self._sections: dict[int, Section] = {}
        self._chosen: list[int] = []
        self._cover = Cover(self._candidates())

    def text(self) -> str:
        """Choose goals, then the state, then everything else; fill what is left; never exceed the limits."""
        limit = self._request.max_tokens
        self._with_headings = limit >= HEADINGS_FROM
        room = float(limit - self._heading_cost())
        if self._with_headings:
            room -= self._take(self._goals(), room, GOALS_SHARE, GOALS_MOST, "goals")
            if self._request.mode == "all":
                room -= self._take(self._closing(), room, STATE_SHARE, STATE_MOST, "state")
        text = ""
        for _ in range(4):
            self._chosen.extend(self._cover.take(max(room, 0.0)))
            text = self._fit()
            room = limit - self._count(text)
            if room < limit * 0.01 or len(text) > self._request.max_chars * 0.98:
                break
        return text or self._clipped()

    def _candidates(self) -> list[Candidate]:
        focus = frozenset(terms(self._request.focus or ""))
        labels: dict[str, float] = {}
        per_char = self._request.max_tokens / max(self._request.max_chars, 1)
        found: list[Candidate] = []
        for passage in self._passages:
            worth = self._worth(passage, focus)
            cost = max(self._count(" " + passage.text), len(passage.text) * per_char) if worth else 1.0
            speaker = passage.speaker
            if speaker not in labels:
                labels[speaker] = float(self._count(f"\n{speaker}: "))
            factor = passage.factor * (FOCUS if focus and not focus.isdisjoint(worth) else 1.0)
            found.append(
                Candidate(
                    terms=tuple(worth.items()), cost=cost, block=passage.message, opening=labels[speaker], factor=factor
                )
            )
        return found

    def _worth(self, passage: Passage, focus: frozenset[str]) -> dict[str, float]:
        """What each term of a passage is worth; an identifier counts beside the words that it is made of."""
        worth: dict[str, float] = {}
        for term in terms(passage.text):
            value = information(term)
            if value:
                worth[term] = value * FOCUS if term in focus else value
        for mention in mentions(passage.text, names=passage.factor != TOOL):
            worth["\0" + mention.key] = IDENTIFIER * KIND_WEIGHTS[mention.kind]
        return worth

    def _take(self, among: list[int], room: float, share: float, most: int, section: Section) -> float:
        before = room * share
        taken = self._cover.take(before, among, most)
        self._sections.update(dict.fromkeys(taken, section))
        self._chosen.extend(taken)
        return float(self._count(self._render(taken))) if taken else 0.0

    def _goals(self) -> list[int]:
        return [index for index, passage in enumerate(self._passages) if passage.wish or passage.section == "goals"]

    def _closing(self) -> list[int]:
        """Passages of the last two messages that speak."""
        last: list[int] = []
        for passage in reversed(self._passages):
            if passage.message not in last:
                last.append(passage.message)
            if len(last) == 2:
                break
        return [
            index
            for index, passage in enumerate(self._passages)
            if passage.message in last and passage.message > EARLIER
        ]

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
            over = max(self._count(text) - self._request.max_tokens, 1)
            while self._chosen and over > 0:
                over -= self._count(self._passages[self._chosen.pop()].text)
            text = self._render(self._chosen)
        return text

    def _fits(self, text: str) -> bool:
        return self._count(text) <= self._request.max_tokens and len(text) <= self._request.max_chars

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

    def _lines(self, ordered: Sequence[int]) -> list[str]:
        lines = []
        for speaker, indexes in groupby(ordered, lambda index: self._passages[index].speaker):
            said = joined([self._passages[index].text for index in indexes])
            lines.append(f"{speaker}: {said}" if speaker else said)
        return lines

    def _clipped(self) -> str:
        """For limits below any whole sentence: the beginning of the most telling passage."""
        best = self._cover.take(float("inf"), most=1)
        text = self._passages[best[0]].text[: self._request.max_chars] if best else ""
        while text and self._count(text) > self._request.max_tokens:
            text = text[: len(text) * 3 // 4]
        return text
