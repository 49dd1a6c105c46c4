"""An event loop whose time a test controls: waiting takes no time, and what must happen after 5 s happens after 5 s.

When nothing is left to do, time jumps to the next timer. It never jumps while a store's own thread still works, as long
as the store is handed in through `VirtualTime.outside`.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")

START_MS = 1_750_000_000_000
"""The wall clock's time at the start, UTC in ms."""


class VirtualTime:
    """The time of one loop, as a `Clock`. `seconds` counts from 0."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.working = 0

    def now_ms(self) -> int:
        """Milliseconds of UTC wall time since 1970."""
        return START_MS + int(self.seconds * 1000)

    def monotonic_ms(self) -> float:
        """Milliseconds since the start."""
        return self.seconds * 1000

    @contextmanager
    def held(self) -> Iterator[None]:
        """Time stands still inside: something outside the loop is at work."""
        self.working += 1
        try:
            yield
        finally:
            self.working -= 1

    def outside(self, worker: T) -> T:
        """Return `worker` (a store with a thread of its own) with time held during each of its calls."""
        return cast("T", _Held(worker, self))


class _Held:
    def __init__(self, worker: Any, time: VirtualTime) -> None:
        self._worker, self._time = worker, time

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._worker, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            with self._time.held():
                return await method(*args, **kwargs)

        return call


class _Selector(selectors.DefaultSelector):
    """Waits for files, or instead of waiting moves the time."""

    def __init__(self, time: VirtualTime) -> None:
        super().__init__()
        self._virtual = time

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """As a selector does, without the waiting where only timers are waited for."""
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        events = super().select(None if self._virtual.working else 0)
        if not events:
            self._virtual.seconds += timeout
        return events


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, time: VirtualTime) -> None:
        super().__init__(_Selector(time))
        self._virtual = time

    def time(self) -> float:
        return self._virtual.seconds


def virtual_runner() -> tuple[asyncio.Runner, VirtualTime]:
    """Return a runner, to be closed, whose loop lives in virtual time, and that time."""
    time = VirtualTime()
    return asyncio.Runner(loop_factory=lambda: _Loop(time)), time


def run_in_virtual_time(main: Callable[[VirtualTime], Coroutine[Any, Any, T]]) -> T:
    """Run `main(time)` to its end in a loop of its own, and return what it returns."""
    runner, time = virtual_runner()
    with runner:
        return runner.run(main(time))
