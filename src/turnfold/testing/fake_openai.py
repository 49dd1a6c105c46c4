"""A real HTTP server that speaks OpenAI Chat Completions and answers what a test scripts: a fake upstream.

Serves `/v1/models` and `/v1/chat/completions` (and `/v1/messages` in Anthropic's dialect), whole and streamed, enforces a context
window and a key, and can fail in every way that real endpoints do. Standard library only. In a test:
`async with FakeOpenAI([says("hello")]) as server`, or `with FakeOpenAI(...).in_thread() as server` from synchronous code. By
itself: `python -m turnfold.testing.fake_openai --script answers.json` prints its base URL and serves until it is stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self, assert_never

from turnfold.testing.fake_answers import (
    DEFAULT_ANSWER,
    Answer,
    Body,
    Breaks,
    Fails,
    Hangs,
    Says,
    Script,
    Sends,
    load_script,
    overflows,
)
from turnfold.testing.fake_dialects import CREATED, DIALECTS, Dialect, Exchange, OpenAIDialect
from turnfold.testing.fake_http import MAX_BODY, Received, Wire, receive


def rough_tokens(body: Body) -> int:
    """Count a request's prompt: a token for every four bytes of its messages and tools as JSON."""
    shown = json.dumps([body.get("messages"), body.get("tools")], ensure_ascii=False)
    return math.ceil(len(shown.encode("utf-8", "replace")) / 4)


class FakeOpenAI:
    """The server. `script` gives one answer a call (text is a good one); when it ends, `then` answers.

    With `context_window`, a prompt that `count_tokens` finds larger, its output limit included, gets OpenAI's overflow error. With
    `api_key`, every request must carry it. `requests` holds what came in.
    """

    def __init__(
        self,
        script: Script = (),
        *,
        then: Answer | str = DEFAULT_ANSWER,
        models: tuple[str, ...] = ("fake-model",),
        context_window: int | None = None,
        count_tokens: Callable[[Body], int] = rough_tokens,
        api_key: str | None = None,
    ) -> None:
        self._function = script if callable(script) else None
        self._answers = iter(()) if callable(script) else iter(script)
        self._then, self._models, self._api_key = then, models, api_key
        self._window, self._count = context_window, count_tokens
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.requests: list[Received] = []
        self.base_url = ""

    @property
    def completions(self) -> list[Body]:
        """The bodies of the completion requests, in order."""
        return [request.body for request in self.requests if request.path in DIALECTS]

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Listen and return the base URL."""
        self._server = await asyncio.start_server(self._connected, host, port, limit=MAX_BODY)
        bound = self._server.sockets[0].getsockname()
        self.base_url = f"http://{bound[0]}:{bound[1]}/v1"
        return self.base_url

    async def aclose(self) -> None:
        """Stop, hanging answers included."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await server.wait_closed()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @contextmanager
    def in_thread(self) -> Iterator[Self]:
        """Serve from a thread of its own, for synchronous tests."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="fake-openai", daemon=True)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self.start(), loop).result(10)
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self.aclose(), loop).result(10)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(10)
            loop.close()

    # -- connections ---------------------------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._serve_one(reader, Wire(writer)):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the other side left, or the server stops
        finally:
            self._connections.discard(task)
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve_one(self, reader: asyncio.StreamReader, wire: Wire) -> bool:
        """Answer one request; return whether the connection can carry another."""
        received = await receive(reader)
        if received is None:
            return False
        self.requests.append(received)
        path = received.path.partition("?")[0]
        dialect = DIALECTS.get(path, OpenAIDialect())
        if self._api_key is not None and self._api_key not in _keys(received):
            return await self._fail(Fails(status=401, message="Incorrect API key provided."), dialect, None, wire)
        if received.method == "GET" and path == "/v1/models":
            await wire.json(200, {"object": "list", "data": [_model_entry(name) for name in self._models]})
            return True
        if received.method == "POST" and path in DIALECTS:
            return await self._complete(received.body, dialect, wire)
        return await self._fail(Fails(status=404, message=f"no such path: {path}"), dialect, None, wire)

    async def _complete(self, body: Body, dialect: Dialect, wire: Wire) -> bool:
        prompt = self._count(body)
        answer = self._answer(body, prompt)
        output = math.ceil(len((answer.text or "").encode("utf-8", "replace")) / 4) if isinstance(answer, Says) else 0
        exchange = Exchange(number=len(self.requests), body=body, prompt_tokens=prompt, output_tokens=output)
        match answer:
            case Says():
                await asyncio.sleep(answer.after)
                return await self._say(answer, dialect, exchange, wire)
            case Fails():
                return await self._fail(answer, dialect, exchange, wire)
            case Hangs(seconds=seconds):
                await (asyncio.Event().wait() if seconds is None else asyncio.sleep(seconds))
                return False
            case Breaks(text=text):
                return await self._break(text, dialect, exchange, wire)
            case Sends():
                await wire.whole(answer.status, answer.body.encode(), answer.content_type)
                return True
            case _ as never:
                assert_never(never)

    def _answer(self, body: Body, prompt: int) -> Answer:
        wanted = body.get("max_completion_tokens") or body.get("max_tokens") or 0
        if self._window is not None and prompt + wanted > self._window:
            return overflows(self._window, prompt + wanted)
        given = self._function(body) if self._function else next(self._answers, self._then)
        return Says(text=given) if isinstance(given, str) else given

    async def _say(self, answer: Says, dialect: Dialect, exchange: Exchange, wire: Wire) -> bool:
        if not exchange.body.get("stream"):
            await wire.json(200, dialect.whole(answer, exchange))
            return True
        await wire.start_stream()
        for event in dialect.events(answer, exchange):
            await wire.event(event)
        await wire.end_stream()
        return True

    async def _fail(self, answer: Fails, dialect: Dialect, exchange: Exchange | None, wire: Wire) -> bool:
        if exchange is None or not (answer.in_stream and exchange.body.get("stream")):
            await wire.json(answer.status, dialect.error(answer), answer.headers)
            return True
        await wire.start_stream()
        begun = dialect.events(Says(text="Let me think"), exchange)
        for event in (next(begun), next(begun), dialect.error_event(answer)):
            await wire.event(event)
        await wire.end_stream()
        return True

    async def _break(self, text: str, dialect: Dialect, exchange: Exchange, wire: Wire) -> bool:
        """Send part of an answer of `text`, or nothing, and let the connection end."""
        if text and exchange.body.get("stream"):
            await wire.start_stream()
            events = list(dialect.events(Says(text=text), exchange))
            for event in events[: len(events) // 2]:
                await wire.event(event)
        elif text:
            await wire.half(dialect.whole(Says(text=text), exchange))
        return False


def _keys(received: Received) -> tuple[str, str]:
    """The key as OpenAI and as Anthropic send it."""
    bearer = received.headers.get("authorization", "").removeprefix("Bearer ")
    return bearer, received.headers.get("x-api-key", "")


def _model_entry(name: str) -> Body:
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "fake"}


async def _serve(arguments: argparse.Namespace) -> None:
    script = load_script(arguments.script) if arguments.script else []
    server = FakeOpenAI(script, context_window=arguments.window, api_key=arguments.api_key)
    sys.stdout.write(await server.start(port=arguments.port) + "\n")
    sys.stdout.flush()
    try:
        await asyncio.Event().wait()
    finally:
        await server.aclose()


def main(argv: list[str] | None = None) -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="fake_openai", description="A scripted OpenAI-compatible server for tests.")
    parser.add_argument("--port", type=int, default=0, help="0 chooses a free one")
    parser.add_argument("--script", type=Path, help="JSON list of answers; without one every answer is good")
    parser.add_argument("--window", type=int, help="tokens; a larger request overflows")
    parser.add_argument("--api-key", help="require this key")
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(parser.parse_args(argv)))


if __name__ == "__main__":
    main()
