"""Who is told of events: callbacks, and async iterators for callers who would rather wait for the next one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from turnfold.runtime.events import Event, Listener

MAX_WAITING = 10_000
"""Events that may wait for a slow reader; the oldest are dropped first, and counted."""


class EventStream(AsyncIterator[Event]):
    """A listener to be iterated over: `async for event in stream`. It ends when it is closed and read to its end.

    Call it from the event loop that reads it, as sessions do. `dropped` counts the events that a slow reader missed.
    """

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[Event | None] = asyncio.Queue()
        self._closed = False
        self.dropped = 0

    def __call__(self, event: Event) -> None:
        """Take one event; never blocks, and does nothing once closed."""
        if self._closed:
            return
        if self._waiting.qsize() >= MAX_WAITING:
            self._waiting.get_nowait()
            self.dropped += 1
        self._waiting.put_nowait(event)

    def close(self) -> None:
        """End the stream: what was told before is still read."""
        if not self._closed:
            self._closed = True
            self._waiting.put_nowait(None)

    async def __anext__(self) -> Event:
        """Return the next event, waiting for it."""
        event = await self._waiting.get()
        if event is None:
            self._waiting.put_nowait(None)  # every further call ends at once, too
            raise StopAsyncIteration
        return event


class Events:
    """Tells every listener of each event. A listener that raises fails no turn: the event loop's handler is told of it."""

    def __init__(self, listener: Listener | None = None) -> None:
        self._listeners: list[Listener] = [] if listener is None else [listener]

    def tell(self, event: Event) -> None:
        """Call every listener, in the order in which they came."""
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception as error:  # noqa: BLE001 - a caller's code may raise anything
                context = {"message": f"a listener failed on {type(event).__name__}", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)

    @contextmanager
    def stream(self) -> Iterator[EventStream]:
        """Follow the events from now on: `with session.events.stream() as stream: async for event in stream: ...`."""
        stream = EventStream()
        self._listeners.append(stream)
        try:
            yield stream
        finally:
            self._listeners.remove(stream)
            stream.close()
