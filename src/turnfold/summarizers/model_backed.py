"""The summarizer that asks a chat model: prompts, protocols, the overflow ladder, and checks on what comes back.

It pays for nothing that cannot work: where the model's window is known the transcript is cut by count before the first call, and
a recursive plan that needs more calls than are left is not started. It keeps no state between calls, so it may be
cancelled at any moment.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from turnfold.core.excerpt import Excerpt, excerpt, long_results, transcript_length
from turnfold.core.limits import CallBudget
from turnfold.core.plan import SummaryDraft, SummaryRequest
from turnfold.core.protocol import material, segment_excerpts
from turnfold.core.protocol_answers import Answer, Asked, accept
from turnfold.core.truncation import bound_summary, ladder
from turnfold.errors import ProviderOverflowError, SummaryError, SummaryLimitError
from turnfold.messages.model import Message, Usage, add_usage, text_message
from turnfold.ports import ChatModel, ChatRequest, TokenCounter
from turnfold.summarizers.prompt_files import Instructions, Prompts, instructions, load_prompts

MIN_REPLY_TOKENS = 4_096
"""Output to allow at least where the window permits: reasoning models spend output on thinking first."""

ESTIMATE_MARGIN = 1.05
"""An estimated count may be this much too low."""


class _Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call about to be made: what is shown, and the messages that say so."""

    shown: Excerpt
    instructions: Instructions
    messages: tuple[Message, ...]


class _Told(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted answer to one segment."""

    answer: Answer
    reply: Message
    shown: Excerpt


class ModelBackedSummarizer:
    """Summarizes through any ChatModel.

    `counter` counts for the model's own window and bounds intermediate summaries. `prompts` default to the shipped ones.
    """

    def __init__(
        self,
        model: ChatModel,
        counter: TokenCounter,
        *,
        prompts: Prompts | None = None,
        temperature: float | None = None,
    ) -> None:
        self.model, self.counter = model, counter
        self.prompts = prompts or load_prompts()
        self.temperature = temperature

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    @property
    def deterministic(self) -> bool:
        """False: calls are paid and answers differ."""
        return False

    def calls_needed(self, request: SummaryRequest) -> int:
        """Return how many calls the request takes when nothing overflows: its segments, or one."""
        return len(segment_excerpts(request, self.counter.count_text))

    def generation_room(self, request: SummaryRequest) -> int | None:
        """Return the tokens that the model's window leaves for the answer to the largest call, uncut; None if unknown."""
        window = self.model.context_window
        if window is None:
            return None
        shown = segment_excerpts(request, self.counter.count_text)
        largest = max(self._tokens(self._call(request, part, request.previous_summary).messages) for part in shown)
        return window - largest

    async def summarize(self, request: SummaryRequest, calls: CallBudget) -> SummaryDraft:
        """Return a draft. Raises SummaryRejectedError, SummaryLimitError before paying for what cannot be finished,
        SummaryError (`overflow`) when nothing is small enough, ProviderError.
        """
        parts = segment_excerpts(request, self.counter.count_text)
        if calls.left is not None and calls.left < len(parts):
            detail = f"{len(parts)} model calls are needed, {calls.left} are left"
            raise SummaryLimitError(detail, code="call_limit")
        previous, usage, hidden = request.previous_summary, None, list[str]()
        told: _Told | None = None
        for number, part in enumerate(parts, 1):
            told = await self._tell(request, part, previous, calls, (number, len(parts)))
            previous = self._bounded(told.answer.text, request)
            usage = add_usage(usage, told.reply.usage)
            hidden.extend(told.shown.not_shown)
        if told is None:
            raise SummaryError("there is nothing to summarize", code="nothing_to_summarize")
        return self._draft(request, told, usage, hidden)

    def _draft(self, request: SummaryRequest, told: _Told, usage: Usage | None, hidden: list[str]) -> SummaryDraft:
        return SummaryDraft(
            text=told.answer.text,
            structured=told.answer.structured,
            model=told.reply.model or self.model.name,
            prompt_hash=self.prompts.hash,
            usage=usage,
            not_shown=(*hidden, *long_results(request.messages, request.tool_result_chars)),
        )

    def _bounded(self, text: str, request: SummaryRequest) -> str:
        return bound_summary(text, request.max_chars, request.max_tokens, self.counter.count_text)[0]

    # -- one segment ---------------------------------------------------------------------------------------------

    async def _tell(
        self,
        request: SummaryRequest,
        part: Excerpt,
        previous: str | None,
        calls: CallBudget,
        place: tuple[int, int],
    ) -> _Told:
        """Ask about one segment, on ever shorter transcripts while the model's window overflows."""
        overflow: ProviderOverflowError | None = None
        for limit in (None, *ladder(transcript_length(part.lines))):
            call = self._call(request, excerpt(part.lines, limit), previous, place)
            if not self._fits(call.messages, request):
                continue
            calls.take()
            try:
                reply = await self.model.complete(self._request(call, request))
            except ProviderOverflowError as error:
                overflow = error
                continue
            return _Told(answer=_checked(reply, call, request), reply=reply, shown=call.shown)
        detail = str(overflow) if overflow else "the instructions alone leave no room in the summarizer's window"
        raise SummaryError(detail, code="overflow") from overflow

    def _call(
        self, request: SummaryRequest, shown: Excerpt, previous: str | None, place: tuple[int, int] = (1, 1)
    ) -> _Call:
        orders = instructions(self.prompts, request, has_previous=bool(previous), segment=place[0], segments=place[1])
        text = orders.around(material(request, shown, previous_summary=previous))
        messages = (text_message("order", "system", orders.system), text_message("material", "user", text))
        return _Call(shown=shown, instructions=orders, messages=messages)

    def _request(self, call: _Call, request: SummaryRequest) -> ChatRequest:
        return ChatRequest(
            messages=call.messages, max_output_tokens=self._reply_tokens(request), temperature=self.temperature
        )

    def _reply_tokens(self, request: SummaryRequest) -> int:
        """Return the output to allow: ample, since length is bounded by code and a cut-off answer is worth nothing."""
        limits = [max(MIN_REPLY_TOKENS, 4 * request.max_tokens)]
        if self.model.max_output_tokens is not None:
            limits.append(self.model.max_output_tokens)
        if self.model.context_window is not None:
            limits.append(max(1, self.model.context_window // 4))
        return min(limits)

    def _fits(self, messages: Sequence[Message], request: SummaryRequest) -> bool:
        window = self.model.context_window
        return window is None or self._tokens(messages) + self._reply_tokens(request) <= window

    def _tokens(self, messages: Sequence[Message]) -> int:
        tokens = self.counter.request_overhead + sum(self.counter.count_message(message) for message in messages)
        return tokens if self.counter.exact else math.ceil(tokens * ESTIMATE_MARGIN)


def _checked(reply: Message, call: _Call, request: SummaryRequest) -> Answer:
    asked = Asked(
        instructions=call.instructions.text,
        shown=call.shown.text,
        frame=request.frame,
        output_format=request.output_format,
    )
    return accept(reply, asked)
