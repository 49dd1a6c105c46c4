"""What a session does can be watched: events as callbacks and as a stream, spans and metrics, and none of it breaks a turn."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from turnfold import ChatRequest, Message, Session, Settings, memory_store, new_id, open_session, text_message
from turnfold.errors import ProviderUnavailableError
from turnfold.integrations.open_telemetry import Telemetry
from turnfold.messages.model import Usage
from turnfold.providers.scripted import ScriptedModel
from turnfold.runtime.events import CompactionFinished, CompactionStarted, Event, Listener, RequestPrepared
from turnfold.session.agent import Agent

SETTINGS = Settings(context_window=1_200, output_reserve=0, safety_margin=0, counter="chars4")


@asynccontextmanager
async def session_with(listener: Listener | None) -> AsyncIterator[Session]:
    """A session in memory with a small window."""
    async with memory_store() as store, open_session(store, SETTINGS, listener=listener) as session:
        yield session


async def talk(session: Session, turns: int = 12) -> None:
    """Turns of about 110 tokens."""
    for number in range(turns):
        await session.say(f"question {number} " + "about the port and the path " * 8)
        await session.prepare()
        await session.reply(text_message(new_id(), "assistant", f"answer {number} " + "it is as it was " * 8))


async def test_each_request_and_each_compaction_is_told_in_order() -> None:
    """A compaction starts, ends, and then its request is ready; a turn without one tells of the request alone."""
    told: list[Event] = []
    async with session_with(told.append) as session:
        await talk(session)
    assert sum(isinstance(event, RequestPrepared) for event in told) == 12
    starts = [place for place, event in enumerate(told) if isinstance(event, CompactionStarted)]
    assert starts
    for place in starts:
        finished, request = told[place + 1], told[place + 2]
        assert isinstance(finished, CompactionFinished)
        assert isinstance(request, RequestPrepared)
        assert (
            (finished.outcome, finished.persistence) == (request.outcome, request.persistence) == ("compacted", "saved")
        )


async def test_a_stream_tells_what_a_callback_is_told() -> None:
    """`session.events.stream()` yields the same events in the same order, from when it is opened until it is closed."""
    told: list[Event] = []
    async with session_with(told.append) as session:
        await talk(session, 2)
        before = len(told)
        with session.events.stream() as stream:
            reader = asyncio.create_task(collected(stream))
            await talk(session, 6)
        assert await asyncio.wait_for(reader, 10) == told[before:]


async def collected(stream: AsyncIterator[Event]) -> list[Event]:
    """What the stream yields until it ends."""
    return [event async for event in stream]


async def test_a_listener_that_raises_fails_no_turn() -> None:
    """The turn goes on, other listeners are told, and the event loop's handler gets the exception."""
    handled: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: handled.append(context))

    def broken(_: Event) -> None:
        raise ValueError("boom")

    async with session_with(broken) as session:
        with session.events.stream() as stream:
            await talk(session, 1)
        assert [type(event).__name__ for event in await collected(stream)] == ["RequestPrepared"]
    assert str(handled[0]["exception"]) == "boom"


@pytest.fixture
def exported() -> Iterator[tuple[Telemetry, InMemorySpanExporter, InMemoryMetricReader]]:
    """Telemetry through a real SDK that keeps everything in memory."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers, meters = TracerProvider(), MeterProvider([reader])
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    yield Telemetry(tracers, meters), exporter, reader
    tracers.shutdown()
    meters.shutdown()


def points(reader: InMemoryMetricReader) -> dict[str, list[Any]]:
    """The data points of every metric by its name."""
    data = reader.get_metrics_data()
    assert data is not None
    return {
        metric.name: list(metric.data.data_points)
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


async def test_compactions_and_requests_are_measured(
    exported: tuple[Telemetry, InMemorySpanExporter, InMemoryMetricReader],
) -> None:
    """Each compaction is one ended span, each request one point, and no text of the conversation is in any of them."""
    telemetry, exporter, reader = exported
    told: list[Event] = []
    async with session_with(telemetry.listener()) as session:
        with session.events.stream() as stream:
            await talk(session)
        told = await collected(stream)
    finished = sum(isinstance(event, CompactionFinished) for event in told)
    spans = [span for span in exporter.get_finished_spans() if span.name == "turnfold.compaction"]
    assert len(spans) == finished > 0
    measured = points(reader)
    assert sum(point.value for point in measured["turnfold.requests"]) == 12
    assert sum(point.value for point in measured["turnfold.compactions"]) == finished
    assert all("question" not in repr(span.attributes) for span in spans)


async def test_model_calls_are_measured_by_the_conventions(
    exported: tuple[Telemetry, InMemorySpanExporter, InMemoryMetricReader],
) -> None:
    """A streamed call is one client span with the model's name, the reply's usage, and no content."""
    telemetry, exporter, reader = exported

    def answer(request: ChatRequest) -> Message:
        return Message(
            id=new_id(),
            role="assistant",
            parts=text_message("x", "assistant", "the secret answer").parts,
            usage=Usage(input=70, cache_read=30, output=5),
            model="served-model",
        )

    async with session_with(None) as session:
        agent = Agent(session, telemetry.model(ScriptedModel(answer, name="asked-model")))
        assert [event async for event in agent.turn("the secret question")]
    (span,) = exporter.get_finished_spans()
    assert span.name == "chat asked-model"
    attributes = dict(span.attributes or {})
    assert attributes["gen_ai.request.model"] == "asked-model"
    assert attributes["gen_ai.response.model"] == "served-model"
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (100, 5)
    assert "secret" not in span.to_json()
    assert {point.sum for point in points(reader)["gen_ai.client.token.usage"]} == {100, 5}


async def test_a_failing_call_ends_its_span_with_the_error(
    exported: tuple[Telemetry, InMemorySpanExporter, InMemoryMetricReader],
) -> None:
    """The error is raised as it was, and the span names its type."""
    telemetry, exporter, _ = exported

    def fails(request: ChatRequest) -> Message:
        raise ProviderUnavailableError("the endpoint is gone")

    model = telemetry.model(ScriptedModel(fails, name="m"))
    with pytest.raises(ProviderUnavailableError, match="gone"):
        await model.complete(ChatRequest(messages=(text_message("1", "user", "hello"),)))
    (span,) = exporter.get_finished_spans()
    assert error_type(span) == "ProviderUnavailableError"


def error_type(span: ReadableSpan) -> object:
    """The error type that a span names."""
    return dict(span.attributes or {}).get("error.type")
