"""The agent loop: a model with tools, run until it answers; every step is in the log before the next one is made.

A provider's overflow compacts and retries within the bounds of the session; parallel calls run side by side and their
results are appended together, in the order of the calls.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from turnfold.errors import ProviderOverflowError, ProviderUnavailableError, TurnfoldError
from turnfold.messages.model import Message, Text, Tool, ToolCall, ToolResult
from turnfold.ports import ChatModel, ChatRequest, TextDelta
from turnfold.runtime.decision import Prepared
from turnfold.session.session import Session

MAX_STEPS = 64
"""Model calls in one turn; a loop that needs more is stuck."""

INTERRUPTED = "[interrupted before a result was recorded; it may have been carried out, so look before doing it again]"

COMPACT_TOOL = Tool(
    name="compact",
    description=(
        "Summarize the older part of this conversation now, to make room. Call it at a natural break, when earlier steps "
        "are done. Nothing is lost: originals stay searchable."
    ),
    parameters={
        "type": "object",
        "properties": {"focus": {"type": "string", "description": "What the summary should dwell on."}},
        "additionalProperties": False,
    },
)


class RunnableTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's definition, and the coroutine function that runs it on the parsed arguments and returns text."""

    definition: Tool
    run: Callable[[dict[str, Any]], Awaitable[str]]


TurnEvent: TypeAlias = TextDelta | Message | Prepared
"""What a turn yields: each prepared request, the pieces of text as they come, every message once it is in the log."""


class Agent:
    """Runs turns of a session with a model. `tools` are offered beside `compact`; the session must not have others."""

    def __init__(
        self, session: Session, model: ChatModel, tools: Sequence[RunnableTool] = (), *, max_output: int | None = None
    ) -> None:
        self.session, self.model, self.max_output = session, model, max_output
        self._tools = {tool.definition.name: tool for tool in tools}
        self._focus: str | None = None
        self._compact_next = False
        session.tools = (*(tool.definition for tool in tools), COMPACT_TOOL)

    async def turn(self, text: str) -> AsyncIterator[TurnEvent]:
        """Say `text` and run the model until it gives a final answer.

        Raises ProviderError when the model fails (what was said so far is in the log, so the turn can go on with
        `resume`), ContextOverflowError when nothing fits any more.
        """
        yield (await self.session.say(text)).message
        async for event in self.resume():
            yield event

    async def resume(self) -> AsyncIterator[TurnEvent]:
        """Go on with the open turn: after an error, a restart, or a regenerate.

        Calls that were interrupted are not made again: the model is told that they may have been carried out.
        """
        for result in await self._answer_interrupted():
            yield result
        for _ in range(MAX_STEPS):
            reply: Message | None = None
            async for event in self._step():
                reply = event if isinstance(event, Message) else reply
                yield event
            if reply is None or not reply.calls:
                return
            for result in await self._run_calls(reply.calls):
                yield result
        raise TurnfoldError(f"the model asked for tools {MAX_STEPS} times in one turn. Say how to go on, or stop here.")

    async def _step(self) -> AsyncIterator[TurnEvent]:
        """Prepare, call the model, append the reply."""
        prepared, reply = await self._prepare(), None
        yield prepared
        while reply is None:
            try:
                async for event in self.model.stream(self._request(prepared)):
                    if isinstance(event, TextDelta):
                        yield event
                    else:
                        reply = event
                if reply is None:
                    raise ProviderUnavailableError("the stream ended without a reply")
            except ProviderOverflowError:
                prepared = await self.session.overflowed()
                yield prepared
        after = await self.session.reply(reply)
        yield reply
        if after is not None:
            yield after

    async def _prepare(self) -> Prepared:
        if not self._compact_next:
            return await self.session.prepare()
        self._compact_next, focus, self._focus = False, self._focus, None
        return await self.session.compact(focus)

    def _request(self, prepared: Prepared) -> ChatRequest:
        return ChatRequest(messages=prepared.messages, tools=prepared.tools, max_output_tokens=self.max_output)

    async def _answer_interrupted(self) -> tuple[Message, ...]:
        content = (Text(text=INTERRUPTED),)
        calls = await self.session.waiting_calls()
        results = [ToolResult(call_id=call.id, name=call.name, content=content, is_error=True) for call in calls]
        return await self._append_results(results) if results else ()

    async def _run_calls(self, calls: Sequence[ToolCall]) -> tuple[Message, ...]:
        return await self._append_results(await asyncio.gather(*(self._run_call(call) for call in calls)))

    async def _append_results(self, results: Sequence[ToolResult]) -> tuple[Message, ...]:
        now = self.session.compactor.clock.now_ms()
        messages = tuple(
            Message(id=self.session.new_id(), role="tool", parts=(result,), created_at=now) for result in results
        )
        await self.session.append(*messages)
        return messages

    async def _run_call(self, call: ToolCall) -> ToolResult:
        """Run one call; a tool that fails answers with its error, so that the model can react."""
        try:
            text, failed = await self._answer(call), False
        except Exception as error:  # noqa: BLE001 - a tool may raise anything, and the call needs its result
            text, failed = f"{type(error).__name__}: {error}", True
        return ToolResult(call_id=call.id, name=call.name, content=(Text(text=text),), is_error=failed)

    async def _answer(self, call: ToolCall) -> str:
        arguments = json.loads(call.arguments or "{}")
        if not isinstance(arguments, dict):
            raise TypeError("the arguments must be a JSON object")
        if call.name == COMPACT_TOOL.name:
            focus = arguments.get("focus")
            if focus is not None and not isinstance(focus, str):
                raise TypeError("focus must be text")
            self._compact_next, self._focus = True, focus
            return "The older part will be summarized before your next step."
        if call.name not in self._tools:
            raise LookupError(f"there is no tool {call.name!r}; the tools are {', '.join(sorted(self._tools))}")
        return await self._tools[call.name].run(arguments)
