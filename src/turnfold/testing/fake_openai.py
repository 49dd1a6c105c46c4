"""A real HTTP server that speaks OpenAI Chat Completions and answers what a test scripts: a fake upstream.

Serves `/v1/models` and `/v1/chat/completions`, whole and streamed, enforces a context window and a key, and can fail in every way
that real endpoints do. Standard library only. In a test: `async with FakeOpenAI([says("hello")]) as server`, or
`with FakeOpenAI(...).in_thread() as server` from synchronous code. By itself:
`python -m turnfold.testing.fake_openai --script answers.json` prints its base URL and serves until it is stopped.
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
from typing import Final, Self, assert_never

import msgspec

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
    deltas_of,
    error_body,
    load_script,
    message_of,
    model_entry,
    overflows,
)

MAX_BODY: Final = 64 * 1024 * 1024


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it came in; `body` is the parsed JSON of a completion request."""

    method: str
    path: str
    headers: dict[str, str]
    body: Body


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
        """The bodies of the completion requests."""
        return [request.body for request in self.requests if request.path.endswith("/chat/completions")]

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
            while await self._serve_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the other side left, or the server stops
        finally:
            self._connections.discard(task)
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection can carry another."""
        received = await _receive(reader)
        if received is None:
            return False
        self.requests.append(received)
        wire = _Wire(writer)
        match received.method, received.path.partition("?")[0]:
            case _ if self._api_key is not None and received.headers.get("authorization") != f"Bearer {self._api_key}":
                failure = Fails(status=401, message="Incorrect API key provided.", code="invalid_api_key")
                await wire.json(failure.status, error_body(failure))
            case "GET", "/v1/models":
                await wire.json(200, {"object": "list", "data": [model_entry(name) for name in self._models]})
            case "POST", "/v1/chat/completions":
                return await self._complete(received.body, wire)
            case _:
                await wire.json(404, error_body(Fails(status=404, message=f"no such path: {received.path}")))
        return True

    async def _complete(self, body: Body, wire: _Wire) -> bool:
        answer = self._answer(body)
        match answer:
            case Says():
                await asyncio.sleep(answer.after)
                await self._say(answer, body, wire)
                return True
            case Fails():
                await self._fail(answer, body, wire)
                return True
            case Hangs(seconds=seconds):
                await (asyncio.Event().wait() if seconds is None else asyncio.sleep(seconds))
                return False
            case Breaks(text=text):
                await self._break(text, body, wire)
                return False
            case Sends():
                await wire.whole(answer.status, answer.body.encode(), answer.content_type)
                return True
            case _ as never:
                assert_never(never)

    def _answer(self, body: Body) -> Answer:
        prompt = self._count(body)
        wanted = body.get("max_completion_tokens") or body.get("max_tokens") or 0
        if self._window is not None and prompt + wanted > self._window:
            return overflows(self._window, prompt + wanted)
        given = self._function(body) if self._function else next(self._answers, self._then)
        return Says(text=given) if isinstance(given, str) else given

    # -- answers -------------------------------------------------------------------------------------------------

    async def _say(self, answer: Says, body: Body, wire: _Wire) -> None:
        if not body.get("stream"):
            await wire.json(200, self._completion(answer, body))
            return
        await wire.start_stream()
        for chunk in self._chunks(answer, body):
            await wire.event(chunk)
        await wire.end_stream()

    async def _fail(self, answer: Fails, body: Body, wire: _Wire) -> None:
        if not (answer.in_stream and body.get("stream")):
            await wire.json(answer.status, error_body(answer), answer.headers)
            return
        await wire.start_stream()
        await wire.event(self._chunk(body, {"role": "assistant", "content": "Let me"}))
        await wire.event(error_body(answer))
        await wire.end_stream()

    async def _break(self, text: str, body: Body, wire: _Wire) -> None:
        if not text:
            return
        if body.get("stream"):
            await wire.start_stream()
            await wire.event(self._chunk(body, {"role": "assistant", "content": text}))
            return
        data = json.dumps(self._completion(Says(text=text), body)).encode()
        await wire.head(200, {"Content-Type": "application/json", "Content-Length": str(len(data))})
        await wire.send(data[: len(data) // 2])

    def _completion(self, answer: Says, body: Body) -> Body:
        return {
            **self._head(body, "chat.completion"),
            "choices": [{"index": 0, "message": message_of(answer), "finish_reason": answer.finish_reason}],
            "usage": self._usage(answer, body),
        }

    def _head(self, body: Body, kind: str) -> Body:
        return {
            "id": f"chatcmpl-fake-{len(self.requests)}",
            "object": kind,
            "created": 1_700_000_000,
            "model": body.get("model", self._models[0]),
        }

    def _chunk(self, body: Body, delta: Body, finish_reason: str | None = None) -> Body:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return {**self._head(body, "chat.completion.chunk"), "choices": [choice]}

    def _chunks(self, answer: Says, body: Body) -> Iterator[Body]:
        for delta in deltas_of(answer):
            yield self._chunk(body, delta)
        yield self._chunk(body, {}, answer.finish_reason)
        if (body.get("stream_options") or {}).get("include_usage"):
            usage = self._usage(answer, body)
            yield {**self._head(body, "chat.completion.chunk"), "choices": [], "usage": usage}

    def _usage(self, answer: Says, body: Body) -> Body:
        prompt, output = self._count(body), math.ceil(len((answer.text or "").encode("utf-8", "replace")) / 4)
        counted = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
        return answer.usage if answer.usage is not None else counted


class _Wire:
    """Writes HTTP/1.1 responses."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def head(self, status: int, headers: dict[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} Fake", *(f"{name}: {value}" for name, value in headers.items())]
        await self.send("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def whole(self, status: int, data: bytes, content_type: str, headers: dict[str, str] | None = None) -> None:
        await self.head(status, {"Content-Type": content_type, "Content-Length": str(len(data)), **(headers or {})})
        await self.send(data)

    async def json(self, status: int, value: Body, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        await self.whole(status, data, "application/json", headers)

    async def start_stream(self) -> None:
        await self.head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})

    async def event(self, value: Body) -> None:
        await self._part(f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode("utf-8", "replace"))

    async def end_stream(self) -> None:
        await self._part(b"data: [DONE]\n\n")
        await self.send(b"0\r\n\r\n")

    async def _part(self, data: bytes) -> None:
        await self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")


async def _receive(reader: asyncio.StreamReader) -> Received | None:
    """Read one request; None when the connection ended instead."""
    head = (await _until_blank(reader)).decode("latin-1").split("\r\n")
    if len(head) < 2:
        return None
    method, path, _ = head[0].split(" ", 2)
    pairs = (line.partition(":") for line in head[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    data = await reader.readexactly(min(MAX_BODY, int(headers.get("content-length", "0"))))
    body = json.loads(data) if data else {}
    return Received(method=method, path=path, headers=headers, body=body if isinstance(body, dict) else {})


async def _until_blank(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""


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
