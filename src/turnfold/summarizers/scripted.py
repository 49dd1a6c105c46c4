"""Summarizers that say what they are told to: for tests and for trying things out without a model.

Text answers pass the same checks as a model's, so a script can hold refusals, blanks and broken JSON and fails as a
model would. `first_characters` is the seed's mock: it keeps the first characters of each user message, so that what was
compacted away is really gone from the summary.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeAlias

from turnfold.core.limits import CallBudget
from turnfold.core.plan import SummaryDraft, SummaryRequest
from turnfold.core.protocol import whole_text
from turnfold.core.protocol_answers import Asked, accept
from turnfold.core.truncation import utf16_length
from turnfold.errors import SummaryError
from turnfold.messages.model import Message, text_message


class Hang:
    """An answer that never comes; only cancelling ends it."""


HANG: Final = Hang()

Answer: TypeAlias = str | Message | SummaryDraft | Hang | BaseException
Script: TypeAlias = Iterable[Answer] | Callable[[SummaryRequest], Answer | Awaitable[Answer]]


class ScriptedSummarizer:
    """Gives the answers of a script, one a call: an iterable, or a function of the request (awaited if need be).

    Text and messages are checked as a model's reply, drafts returned as they are, exceptions raised, `HANG` never returns.
    `requests` holds what was asked. A script that has run out raises SummaryError (`script_ended`).
    """

    def __init__(self, script: Script, *, name: str = "scripted", deterministic: bool = False) -> None:
        self._name, self._deterministic = name, deterministic
        self._answers = None if callable(script) else iter(script)
        self._function = script if callable(script) else None
        self.requests: list[SummaryRequest] = []

    @property
    def name(self) -> str:
        """The name given."""
        return self._name

    @property
    def deterministic(self) -> bool:
        """As given: True means that no call is counted."""
        return self._deterministic

    def generation_room(self, request: SummaryRequest) -> int | None:
        """None: a script has no window."""
        return None

    async def summarize(self, request: SummaryRequest, calls: CallBudget) -> SummaryDraft:
        """Return the script's next draft. Raises what the script says."""
        if not self._deterministic:
            calls.take()
        self.requests.append(request)
        answer = await self._next(request)
        match answer:
            case SummaryDraft():
                return answer
            case BaseException():
                raise answer
            case Hang():
                return await _never()
            case str() | Message():
                return _draft(answer, request, self._name)

    async def _next(self, request: SummaryRequest) -> Answer:
        if self._function is not None:
            given = self._function(request)
            return await given if isinstance(given, Awaitable) else given
        for answer in self._answers or ():
            return answer
        raise SummaryError("the script has no more answers", code="script_ended")


async def _never() -> SummaryDraft:
    await asyncio.Event().wait()
    raise AssertionError("nothing sets this event")


def _draft(answer: str | Message, request: SummaryRequest, name: str) -> SummaryDraft:
    reply = text_message("scripted", "assistant", answer) if isinstance(answer, str) else answer
    asked = Asked(instructions="", shown=whole_text(request), frame=request.frame, output_format=request.output_format)
    accepted = accept(reply, asked)
    return SummaryDraft(
        text=accepted.text, structured=accepted.structured, model=reply.model or name, usage=reply.usage
    )


def first_characters(count: int = 12, *, separator: str = "；") -> ScriptedSummarizer:
    """Return the seed's mock: the first `count` characters of each user message after the previous summary.

    Deterministic. Where that is longer than the request's limit in characters, the oldest pieces go.
    """

    def answer(request: SummaryRequest) -> SummaryDraft:
        pieces = [message.text.strip()[:count] for message in request.messages if message.role == "user"]
        pieces = [piece for piece in (*(request.previous_summary or "").split(separator), *pieces) if piece]
        while len(pieces) > 1 and utf16_length(separator.join(pieces)) > request.max_chars:
            pieces.pop(0)
        return SummaryDraft(text=separator.join(pieces) or "(no user message)", model="first_characters")

    return ScriptedSummarizer(answer, name="first_characters", deterministic=True)
