"""Spans and metrics for OpenTelemetry, through its API package alone: without an SDK configured they cost next to nothing.

Model calls follow the semantic conventions for generative AI (`gen_ai.*`); what is turnfold's own is under `turnfold.*`. No content, key
or address is ever recorded. Importing this module without the API package raises MissingExtraError.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Final

from turnfold.errors import MissingExtraError
from turnfold.messages.model import Message, Usage
from turnfold.ports import ChatModel, ChatRequest, TextDelta
from turnfold.runtime.events import (
    CompactionFailed,
    CompactionFinished,
    CompactionStarted,
    Event,
    Listener,
    RequestPrepared,
)

try:
    from opentelemetry import metrics, trace
except ImportError as error:
    raise MissingExtraError("otel", "opentelemetry-api") from error

SCOPE: Final = "turnfold"


class Telemetry:
    """The instruments of one process. Providers default to the global ones, which an SDK sets up.

    Hand `listener()` to each session and wrap models with `model()`.
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        self.tracer = trace.get_tracer(SCOPE, tracer_provider=tracer_provider)
        meter = metrics.get_meter(SCOPE, meter_provider=meter_provider)
        self.requests = meter.create_counter("turnfold.requests", "{request}", "Prepared requests.")
        self.request_tokens = meter.create_histogram("turnfold.request.tokens", "{token}", "Tokens of a request.")
        self.compactions = meter.create_counter("turnfold.compactions", "{compaction}", "Compactions that were tried.")
        self.saved_tokens = meter.create_histogram(
            "turnfold.compaction.saved_tokens", "{token}", "Message tokens that an adopted compaction took out of view."
        )
        self.summary_calls = meter.create_counter(
            "turnfold.compaction.model_calls", "{call}", "Model calls that compactions paid for."
        )
        self.model_tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of model calls.")
        self.model_seconds = meter.create_histogram("gen_ai.client.operation.duration", "s", "Time of model calls.")

    def listener(self) -> Listener:
        """Return a listener for one session: a span for each compaction, and the metrics of its requests."""
        return _SessionListener(self)

    def model(self, model: ChatModel) -> ChatModel:
        """Return the model with a span and metrics around each call."""
        return _TracedModel(self, model)


class _SessionListener:
    """Follows one session. One compaction is in flight at a time, so one span is open at most."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._span: trace.Span | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case CompactionStarted():
                attributes = {
                    "turnfold.trigger": event.trigger,
                    "turnfold.messages": event.messages,
                    "turnfold.tokens_before": event.tokens,
                }
                self._span = self._telemetry.tracer.start_span("turnfold.compaction", attributes=attributes)
            case CompactionFinished():
                self._compacted(event, {"turnfold.persistence": event.persistence})
                self._telemetry.saved_tokens.record(
                    event.message_tokens_before - event.message_tokens_after, {"turnfold.trigger": event.trigger}
                )
            case CompactionFailed():
                reasons = [reason.code for reason in event.reasons]
                self._compacted(event, {"turnfold.reasons": reasons}, failed=True)
            case RequestPrepared():
                self._prepared(event)

    def _compacted(
        self,
        event: CompactionFinished | CompactionFailed,
        more: dict[str, str | list[str]],
        *,
        failed: bool = False,
    ) -> None:
        attributes = {"turnfold.trigger": event.trigger, "turnfold.outcome": event.outcome}
        self._telemetry.compactions.add(1, attributes)
        span, self._span = self._span, None
        if span is not None:
            span.set_attributes({**attributes, **more})
            if failed:
                span.set_status(trace.StatusCode.ERROR, "not adopted")
            span.end()

    def _prepared(self, event: RequestPrepared) -> None:
        attributes = {"turnfold.outcome": event.outcome, "turnfold.persistence": event.persistence}
        self._telemetry.requests.add(1, attributes)
        self._telemetry.request_tokens.record(event.tokens, attributes)
        if event.calls:
            self._telemetry.summary_calls.add(event.calls)


class _TracedModel:
    """A chat model whose calls are seen. It fails, answers and streams as the one behind it."""

    def __init__(self, telemetry: Telemetry, model: ChatModel) -> None:
        self._telemetry, self._model = telemetry, model

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def context_window(self) -> int | None:
        return self._model.context_window

    @property
    def max_output_tokens(self) -> int | None:
        return self._model.max_output_tokens

    async def complete(self, request: ChatRequest) -> Message:
        with self._call(request) as answered:
            reply = await self._model.complete(request)
            answered(reply)
        return reply

    async def stream(self, request: ChatRequest) -> AsyncIterator[TextDelta | Message]:
        with self._call(request) as answered:
            async for event in self._model.stream(request):
                if isinstance(event, Message):
                    answered(event)
                yield event

    @contextmanager
    def _call(self, request: ChatRequest) -> Iterator[Callable[[Message], None]]:
        """Open the span of one call; the caller tells the reply. It is not made current: a stream may end elsewhere."""
        attributes: dict[str, str | int] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": self.name}
        limits = {} if request.max_output_tokens is None else {"gen_ai.request.max_tokens": request.max_output_tokens}
        span = self._telemetry.tracer.start_span(
            f"chat {self.name}", kind=trace.SpanKind.CLIENT, attributes={**attributes, **limits}
        )
        start = time.monotonic()
        failure: dict[str, str] = {}
        try:
            yield lambda reply: self._answered(span, reply, attributes)
        except BaseException as error:
            failure = {"error.type": type(error).__name__}
            span.set_attributes(failure)
            span.set_status(trace.StatusCode.ERROR, type(error).__name__)
            raise
        finally:
            self._telemetry.model_seconds.record(time.monotonic() - start, {**attributes, **failure})
            span.end()

    def _answered(self, span: trace.Span, reply: Message, attributes: dict[str, str | int]) -> None:
        usage = reply.usage or Usage()
        told = {"gen_ai.response.model": reply.model, "gen_ai.response.finish_reasons": reply.stop_reason}
        span.set_attributes({name: value for name, value in told.items() if value is not None})
        for kind, tokens in (("input", usage.prompt), ("output", usage.output)):
            if tokens:
                span.set_attribute(f"gen_ai.usage.{kind}_tokens", tokens)
                self._telemetry.model_tokens.record(tokens, {**attributes, "gen_ai.token.type": kind})
