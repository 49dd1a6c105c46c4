"""A chat model that says what it is told to: the real fake of the ChatModel port."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Final, TypeAlias

from turnfold.errors import ProviderUnavailableError
from turnfold.messages.model import Message, Text
from turnfold.ports import ChatRequest, TextDelta


class Hang:
    """A reply that never comes; only cancelling ends it."""


_PIECE: Final = re.compile(r"\s*\S+\s*|\s+")

HANG: Final = Hang()

Reply: TypeAlias = str | Message | Hang | BaseException
Script: TypeAlias = Iterable[Reply] | Callable[[ChatRequest], Reply | Awaitable[Reply]]


class ScriptedModel:
    """Gives the replies of a script, one a call: an iterable, or a function of the request (awaited if need be).

    Text becomes an assistant message with stop reason `stop`; exceptions are raised; `HANG` never returns. `requests` holds what
    was asked. A script that has run out raises ProviderUnavailableError. Streams deliver one word at a time.
    """

    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted",
        context_window: int | None = None,
        max_output_tokens: int | None = None,
    ) -> None:
        self._name, self._context_window, self._max_output_tokens = name, context_window, max_output_tokens
        self._replies = None if callable(script) else iter(script)
        self._function = script if callable(script) else None
        self.requests: list[ChatRequest] = []

    @property
    def name(self) -> str:
        """The name given."""
        return self._name

    @property
    def context_window(self) -> int | None:
        """The window given, in tokens; nothing enforces it."""
        return self._context_window

    @property
    def max_output_tokens(self) -> int | None:
        """The limit given, in tokens; nothing enforces it."""
        return self._max_output_tokens

    async def complete(self, request: ChatRequest) -> Message:
        """Return the script's next reply. Raises what the script says."""
        self.requests.append(request)
        reply = await self._next(request)
        match reply:
            case Message():
                return reply
            case BaseException():
                raise reply
            case Hang():
                await asyncio.Event().wait()
                raise AssertionError("nothing sets this event")
            case str():
                return self._message(reply)

    async def stream(self, request: ChatRequest) -> AsyncIterator[TextDelta | Message]:
        """Yield the next reply's text word by word, then the reply."""
        reply = await self.complete(request)
        for piece in _PIECE.findall(reply.text):
            yield TextDelta(text=piece)
        yield reply

    async def _next(self, request: ChatRequest) -> Reply:
        if self._function is not None:
            given = self._function(request)
            return await given if isinstance(given, Awaitable) else given
        for reply in self._replies or ():
            return reply
        raise ProviderUnavailableError("the script has no more replies")

    def _message(self, text: str) -> Message:
        number = len(self.requests)
        return Message(
            id=f"{self._name}-{number}",
            role="assistant",
            parts=(Text(text=text),),
            stop_reason="stop",
            model=self._name,
        )
