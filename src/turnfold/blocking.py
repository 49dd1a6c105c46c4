"""The only synchronous facade: runs turnfold's coroutines on one background event loop.

Nothing is mirrored: `Blocking().run(session.prepare())` is the whole of it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Blocking:
    """One event loop in one daemon thread, for synchronous callers. Use it as a context manager.

    Safe to use from several threads; not from inside an event loop, where the coroutine can simply be awaited.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="turnfold", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel what still runs, then end the loop and its thread."""
        if self._loop is None or self._thread is None:
            return
        self.run(self._cancel_rest())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = None

    @staticmethod
    async def _cancel_rest() -> None:
        rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return its result or raise its error.

        An interrupt (Ctrl-C) cancels it. Raises RuntimeError outside `with Blocking()`.
        """
        if self._loop is None:
            coroutine.close()
            raise RuntimeError("use it as `with Blocking() as blocking:`")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except CancelledError:
            raise
        except BaseException:
            future.cancel()
            raise
