"""Just enough HTTP/1.1 for a fake upstream: reading one request, writing whole and streamed responses."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import msgspec

MAX_BODY: Final = 64 * 1024 * 1024


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it came in; `body` is its JSON object, empty for anything else. Header names are lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


async def receive(reader: asyncio.StreamReader) -> Received | None:
    """Read one request; None when the connection ended instead."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    data = await reader.readexactly(min(MAX_BODY, int(headers.get("content-length", "0"))))
    body = json.loads(data) if data else {}
    return Received(method=method, path=path, headers=headers, body=body if isinstance(body, dict) else {})


class Wire:
    """Writes responses to one connection."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def whole(self, status: int, data: bytes, content_type: str, headers: dict[str, str] | None = None) -> None:
        """Write a response with a length."""
        await self._head(status, {"Content-Type": content_type, "Content-Length": str(len(data)), **(headers or {})})
        await self._send(data)

    async def json(self, status: int, value: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        """Write a JSON response."""
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        await self.whole(status, data, "application/json", headers)

    async def half(self, value: dict[str, Any]) -> None:
        """Write a response that promises twice what comes."""
        data = json.dumps(value).encode()
        await self._head(200, {"Content-Type": "application/json", "Content-Length": str(len(data))})
        await self._send(data[: len(data) // 2])

    async def start_stream(self) -> None:
        """Begin a stream of events."""
        await self._head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})

    async def event(self, data: bytes) -> None:
        """Write one event."""
        await self._send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def end_stream(self) -> None:
        """End the stream in good order."""
        await self._send(b"0\r\n\r\n")

    async def _head(self, status: int, headers: dict[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} Fake", *(f"{name}: {value}" for name, value in headers.items())]
        await self._send("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def _send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()
