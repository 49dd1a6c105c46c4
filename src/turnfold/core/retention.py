"""What a summary must keep, whoever wrote it: the user's standing instructions, and identifiers that cannot be guessed.

Both are found by rule in what is being covered and written into sections of their own, within the summary's allowance; what
does not fit is named in the record (SPEC §6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from turnfold.core.checkpoint import Retention
from turnfold.core.identifiers import KIND_WEIGHTS, Mention, mentions
from turnfold.core.instructions import standing_instructions
from turnfold.core.passages import decides
from turnfold.core.sections import HINT_SEPARATOR, Parsed, parse, render
from turnfold.core.text.scripts import Language, language_of
from turnfold.core.text.terms import terms
from turnfold.core.truncation import bound_summary, utf16_length
from turnfold.messages.model import Message, Text

CountText = Callable[[str], int]

INSTRUCTIONS_SHARE = 0.5
"""Share of the allowance that standing instructions may take at most."""
HINTS_SHARE = 0.25
"""Share of the allowance that hints may take from the body; what the body leaves free is theirs besides."""

ROLE_WEIGHTS = {"user": 3.0, "assistant": 1.5, "tool": 0.6, "system": 1.0}
WRONG_WEIGHT, DECISION_WEIGHT = 2.0, 1.25
"""What a failed tool call or a decision names weighs so many times as much as the rest of that role's."""
READ_CHARS = 4_000
"""Characters of one tool result that are read for identifiers: the rest repeats the same kinds."""
EARLIER_WEIGHT = 0.5
MOST_HINTS = 300
"""Hints weighed at most: no allowance holds more."""
MAX_OMITTED = 40
"""Identifiers and instructions named in the record; more would make the record a second summary."""


class Identifier(msgspec.Struct, frozen=True, kw_only=True):
    """An identifier to keep: `key` must occur, `value` says it with its meaning, `weight` is how much is lost without it."""

    key: str
    value: str
    weight: float


class Obligations(msgspec.Struct, frozen=True, kw_only=True):
    """What a stretch of messages obliges its summary to keep. `mentions` has the identifiers of each message, as found."""

    mentions: tuple[tuple[Mention, ...], ...]
    identifiers: tuple[Identifier, ...]
    instructions: tuple[str, ...]
    language: Language | None


def obligations(messages: Sequence[Message]) -> Obligations:
    """Return what a summary of these messages must keep; equal input gives equal order."""
    found = tuple(tuple(_mentions(message)) for message in messages)
    return Obligations(
        mentions=found,
        identifiers=_weighed(messages, found),
        instructions=standing_instructions(messages),
        language=language_of(texts) if any(texts := [message.text for message in messages]) else None,
    )


def extract_identifiers(messages: Sequence[Message]) -> tuple[Identifier, ...]:
    """Return the identifiers of the messages, the weightiest first; equal input gives equal order."""
    return obligations(messages).identifiers


def _weighed(messages: Sequence[Message], found: Sequence[Sequence[Mention]]) -> tuple[Identifier, ...]:
    """What the user said weighs most, then kind, then repetition; what an error or a decision names weighs more."""
    weights: dict[str, float] = {}
    values: dict[str, str] = {}
    for message, of_message in zip(messages, found, strict=True):
        if not of_message:
            continue
        text, has_calls = message.text, bool(message.calls)
        role_weight = _role_weight(message, text)
        for mention in of_message:
            said = not has_calls or mention.key in text
            gain = (role_weight if said else ROLE_WEIGHTS["tool"]) * KIND_WEIGHTS[mention.kind]
            known = weights.get(mention.key)
            weights[mention.key] = gain if known is None else max(known, gain) + 0.1 * math.log1p(known)
            values.setdefault(mention.key, mention.value)
    ordered = sorted(weights, key=lambda key: -weights[key])
    return tuple(Identifier(key=key, value=values[key], weight=weights[key]) for key in ordered)


def _role_weight(message: Message, text: str) -> float:
    weight = ROLE_WEIGHTS[message.role]
    if message.role == "tool":
        return weight * WRONG_WEIGHT if any(result.is_error for result in message.results) else weight
    return weight * DECISION_WEIGHT if decides(text) else weight


def _mentions(message: Message) -> Iterator[Mention]:
    """Identifiers of what was said, then of calls and results, in which every quoted string would be a name."""
    yield from mentions(message.text)
    if message.role != "user":
        machine = _machine_text(message)
        yield from mentions(machine, names=False)


def _machine_text(message: Message) -> str:
    pieces = [call.arguments[:READ_CHARS].replace("\\n", "\n").replace('\\"', '"') for call in message.calls]
    pieces += [
        "\n".join(part.text for part in result.content if isinstance(part, Text))[:READ_CHARS]
        for result in message.results
    ]
    return "\n".join(pieces)


def missing_identifiers(summary: str, identifiers: Iterable[Identifier]) -> tuple[Identifier, ...]:
    """Return the identifiers that do not occur in the summary, in the order given."""
    folded = summary.casefold()
    return tuple(identifier for identifier in identifiers if identifier.key.casefold() not in folded)


def complete_summary(
    text: str,
    messages: Sequence[Message],
    *,
    previous_summary: str | None,
    max_tokens: int,
    max_chars: int,
    count_text: CountText,
    owed: Obligations | None = None,
) -> tuple[str, Retention]:
    """Return the summary with what it must keep, and the record of what it keeps and what not.

    In: a summary within its limits, the messages it covers, and the summary before it, whose instructions and hints are
    carried on. The body is cut for them where it must be, never to nothing. With nothing to add the text is unchanged, and
    completing a completed summary changes nothing. `owed` saves finding the obligations of `messages` again.
    """
    owed = owed or obligations(messages)
    return _Completion(text, messages, previous_summary or "", max_tokens, max_chars, count_text, owed).done()


def room_for_body(
    body: str,
    messages: Sequence[Message],
    *,
    previous_summary: str | None,
    max_tokens: int,
    max_chars: int,
    count_text: CountText,
    owed: Obligations,
) -> tuple[int, int]:
    """Return the tokens and characters that `complete_summary` would leave to this body."""
    completion = _Completion(body, messages, previous_summary or "", max_tokens, max_chars, count_text, owed)
    return completion.room()


class _Completion:
    def __init__(
        self,
        text: str,
        messages: Sequence[Message],
        previous_summary: str,
        max_tokens: int,
        max_chars: int,
        count_text: CountText,
        owed: Obligations,
    ) -> None:
        self.text, self.max_tokens, self.max_chars, self.count = text, max_tokens, max_chars, count_text
        self.parsed, self.previous = parse(text), parse(previous_summary)
        self.instructions = _latest((*self.previous.instructions, *self.parsed.instructions, *owed.instructions))
        self.identifiers = owed.identifiers
        self.given_hints = self._checked_hints(messages)
        self.language: Language = owed.language or language_of([text])

    def _checked_hints(self, messages: Sequence[Message]) -> tuple[str, ...]:
        """Return the hints to carry: earlier ones, and the summarizer's own that a search would find (SPEC §13)."""
        if not self.parsed.hints:
            return self.previous.hints
        covered = [frozenset(terms(f"{message.text}\n{_machine_text(message)}")) for message in messages]
        found = (hint for hint in self.parsed.hints if any(set(terms(hint)) <= words for words in covered))
        return tuple(dict.fromkeys((*found, *self.previous.hints)))

    def done(self) -> tuple[str, Retention]:
        if not (self.instructions or self.identifiers or self.given_hints):
            return self.text, Retention()
        kept = self._fitting_instructions()
        hints, body = self._hints_and_body(kept)
        whole = self._render(body, kept, hints)
        return whole, self._record(whole, kept, hints)

    def _render(self, body: str, instructions: Sequence[str], hints: Sequence[str]) -> str:
        return render(Parsed(body=body, instructions=tuple(instructions), hints=tuple(hints)), self.language)

    def _fits(self, text: str, tokens: float, chars: float) -> bool:
        return utf16_length(text) <= chars and self.count(text) <= tokens

    def _fitting_instructions(self) -> tuple[str, ...]:
        """Return the newest instructions that fit their share, oldest first."""
        kept: tuple[str, ...] = ()
        tokens, chars = self.max_tokens * INSTRUCTIONS_SHARE, self.max_chars * INSTRUCTIONS_SHARE
        for instruction in reversed(self.instructions):
            longer = (instruction, *kept)
            if self._fits(self._render("", longer, ()), tokens, chars):
                kept = longer
        return kept

    def room(self) -> tuple[int, int]:
        """Return the tokens and characters of the body."""
        return self._room(self._fitting_instructions())

    def _room(self, kept: Sequence[str]) -> tuple[int, int]:
        """What instructions and a share for hints leave; hints that the text has itself count towards that share."""
        fixed = self._render("", kept, ())
        wanted, own = (
            self.count(HINT_SEPARATOR.join(hints[:200])) / max(1, self.max_tokens)
            for hints in (self._wanted_hints(self.parsed.body), self.parsed.hints)
        )
        reserve = max(0.0, min(HINTS_SHARE, wanted) - own)
        tokens = self.max_tokens - (self.count(fixed) + 1 if fixed else 0) - reserve * self.max_tokens
        chars = self.max_chars - (utf16_length(fixed) + 1 if fixed else 0) - reserve * self.max_chars
        return int(tokens), int(chars)

    def _hints_and_body(self, kept: Sequence[str]) -> tuple[tuple[str, ...], str]:
        """Share what the instructions leave: the body is cut to make room for some hints, and hints fill the rest."""
        tokens, chars = self._room(kept)
        body, _ = bound_summary(self.parsed.body, max_chars=chars, max_tokens=tokens, count_text=self.count)
        hints = self._most_hints(body, kept, self._wanted_hints(body))
        whole = self._render(body, kept, hints)
        if not self._fits(whole, self.max_tokens, self.max_chars):
            over = max(self.count(whole) - self.max_tokens, 1)
            body, _ = bound_summary(
                body, max_chars=chars - 2, max_tokens=max(1, self.count(body) - over), count_text=self.count
            )
        return hints, body

    def _wanted_hints(self, body: str) -> list[str]:
        """Return the hints in order of worth: identifiers that the body lacks, and between them those carried on."""
        missing = missing_identifiers(body, self.identifiers)
        strong = [identifier.value for identifier in missing if identifier.weight >= ROLE_WEIGHTS["assistant"]]
        weak = [identifier.value for identifier in missing if identifier.weight < ROLE_WEIGHTS["assistant"]]
        folded = body.casefold()
        carried = [hint for hint in self.given_hints if hint.casefold() not in folded]
        return _without_parts(list(dict.fromkeys((*strong, *carried, *weak)))[:MOST_HINTS])

    def _most_hints(self, body: str, kept: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
        """Return as many of the first hints as fit beside body and instructions."""
        low, high = 0, len(wanted)
        while low < high:
            middle = (low + high + 1) // 2
            if self._fits(self._render(body, kept, wanted[:middle]), self.max_tokens, self.max_chars):
                low = middle
            else:
                high = middle - 1
        return tuple(wanted[:low])

    def _record(self, whole: str, kept: Sequence[str], hints: Sequence[str]) -> Retention:
        missing = missing_identifiers(whole, self.identifiers)
        left_out = [text for text in self.instructions if text not in kept]
        return Retention(
            identifiers_found=len(self.identifiers),
            identifiers_kept=len(self.identifiers) - len(missing),
            identifiers_added=sum(hint not in self.given_hints for hint in hints),
            instructions_found=len(self.instructions),
            instructions_kept=len(kept),
            omitted=tuple([*left_out, *(identifier.value for identifier in missing)][:MAX_OMITTED]),
        )


def _without_parts(hints: list[str]) -> list[str]:
    """Drop hints that another one contains: a file's name beside its path."""
    whole = HINT_SEPARATOR.join(hints).casefold()
    return [hint for hint in hints if whole.count(hint.casefold()) == 1]


def _latest(instructions: Sequence[str]) -> tuple[str, ...]:
    """Return the instructions without repetitions; of equal ones the newest place counts."""
    newest = {" ".join(text.casefold().split()): index for index, text in enumerate(instructions)}
    return tuple(text for index, text in enumerate(instructions) if newest[" ".join(text.casefold().split())] == index)
