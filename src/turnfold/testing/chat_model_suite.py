"""The contract of the ChatModel port, as tests: subclass the suite, say how to serve scripted answers, and pytest runs it.

Answers are those of `fake_answers`, so that a real provider is tested against a real server and a fake against itself.
Needs pytest with pytest-asyncio in auto mode.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

import pytest

from turnfold.core.protocol_answers import CUT_OFF
from turnfold.errors import (
    ProviderAuthError,
    ProviderError,
    ProviderOverflowError,
    ProviderRateLimitError,
    ProviderRequestError,
    ProviderUnavailableError,
)
from turnfold.messages.model import Image, Message, Reasoning, Text, Tool, ToolCall, ToolResult, text_message
from turnfold.ports import ChatModel, ChatRequest, TextDelta
from turnfold.testing.fake_answers import (
    Answer,
    Breaks,
    Called,
    Fails,
    Hangs,
    Says,
    calls_tool,
    cut_off,
    overflows,
    rate_limited,
    reasons_only,
    says,
)

HELLO = ChatRequest(messages=(text_message("m1", "user", "Hello, 世界"),))

FAILURES: tuple[tuple[Answer, type[ProviderError]], ...] = (
    (overflows(), ProviderOverflowError),
    (rate_limited(), ProviderRateLimitError),
    (Fails(status=401, message="bad key"), ProviderAuthError),
    (Fails(status=403, message="not yours"), ProviderAuthError),
    (Fails(status=404, message="no such model"), ProviderRequestError),
    (Fails(status=400, message="bad temperature"), ProviderRequestError),
    (Fails(status=500, message="oops", type="server_error"), ProviderUnavailableError),
    (Fails(status=503, message="overloaded", type="server_error"), ProviderUnavailableError),
    (Breaks(), ProviderUnavailableError),
    (Breaks(text="half an answer that never ends"), ProviderUnavailableError),
)


async def streamed(model: ChatModel, request: ChatRequest) -> tuple[list[str], Message]:
    """Return the deltas of a stream and the reply that ended it."""
    items = [item async for item in model.stream(request)]
    reply = items.pop()
    assert isinstance(reply, Message)
    assert all(isinstance(item, TextDelta) for item in items)
    return [item.text for item in items if isinstance(item, TextDelta)], reply


class ChatModelSuite:
    """Every implementation of ChatModel keeps these promises."""

    def serving(self, answers: Sequence[Answer]) -> AbstractAsyncContextManager[ChatModel]:
        """Return a model whose calls get `answers`, one after another."""
        raise NotImplementedError

    async def test_a_reply_is_an_assistant_message(self) -> None:
        """Text, stop reason and an id of its own come back; two replies never share an id."""
        async with self.serving([says("你好, world"), says("again")]) as model:
            first, second = await model.complete(HELLO), await model.complete(HELLO)
        assert (first.role, first.text, second.text) == ("assistant", "你好, world", "again")
        assert first.id
        assert first.id != second.id
        assert first.stop_reason not in CUT_OFF | {None}

    async def test_a_stream_gives_its_text_and_then_the_same_reply(self) -> None:
        """Deltas add up to the text of the reply that ends the stream."""
        text = "First line.\n\n  Second line, 第二行 🗝️ and more."
        async with self.serving([says(text), says(text)]) as model:
            deltas, reply = await streamed(model, HELLO)
            whole = await model.complete(HELLO)
        assert "".join(deltas) == reply.text == whole.text == text
        assert len(deltas) > 1
        assert (reply.parts, reply.stop_reason) == (whole.parts, whole.stop_reason)

    @pytest.mark.parametrize("stream", [False, True])
    async def test_a_tool_call_is_a_call(self, *, stream: bool) -> None:
        """Calls come back with id, name and arguments, never as text."""
        calls = (Called(name="read_file", arguments='{"path":"src/主.py"}', id="c1"), Called(name="bash", id="c2"))
        request = ChatRequest(messages=HELLO.messages, tools=(Tool(name="read_file", description="Reads a file."),))
        answer = Says(text=None, finish_reason="tool_calls", calls=calls)
        async with self.serving([answer]) as model:
            reply = (await streamed(model, request))[1] if stream else await model.complete(request)
        assert [(call.id, call.name) for call in reply.calls] == [("c1", "read_file"), ("c2", "bash")]
        assert reply.calls[0].arguments.replace(" ", "") == '{"path":"src/主.py"}'
        assert reply.text == ""

    @pytest.mark.parametrize("stream", [False, True])
    async def test_reasoning_is_not_text(self, *, stream: bool) -> None:
        """A reply that only reasons has no text."""
        async with self.serving([reasons_only("Let me think about it")]) as model:
            reply = (await streamed(model, HELLO))[1] if stream else await model.complete(HELLO)
        assert reply.text == ""
        assert [part.text for part in reply.parts if isinstance(part, Reasoning)] == ["Let me think about it"]

    async def test_a_cut_off_reply_says_so(self) -> None:
        """The stop reason tells an output limit."""
        async with self.serving([cut_off("Half a sen"), cut_off("Half a sen")]) as model:
            replies = [await model.complete(HELLO), (await streamed(model, HELLO))[1]]
        assert {reply.stop_reason for reply in replies} <= CUT_OFF

    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize(("answer", "error"), FAILURES, ids=lambda value: getattr(value, "__name__", None))
    async def test_a_failure_is_a_provider_error(
        self, answer: Answer, error: type[ProviderError], *, stream: bool
    ) -> None:
        """Foreign errors never get out, each kind of failure has its class, and the next call works."""
        async with self.serving([answer, says("fine")]) as model:
            with pytest.raises(error) as caught:
                await (streamed(model, HELLO) if stream else model.complete(HELLO))
            assert type(caught.value) is error
            assert (await model.complete(HELLO)).text == "fine"

    @pytest.mark.parametrize("stream", [False, True])
    async def test_a_hanging_call_can_be_cancelled(self, *, stream: bool) -> None:
        """A time limit around a call ends it at once, and the next call works."""
        async with self.serving([says("warm"), Hangs(), says("fine")]) as model:
            await model.complete(HELLO)  # connected: the call below reaches the upstream before its limit
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await (streamed(model, HELLO) if stream else model.complete(HELLO))
            assert (await model.complete(HELLO)).text == "fine"

    async def test_a_conversation_with_tools_and_images_can_be_sent(self) -> None:
        """System prompt, images, parallel calls with their results and an answer after them all go over the wire."""
        calls = (ToolCall(id="c1", name="bash", arguments="{}"), ToolCall(id="c2", name="bash", arguments='{"n":1}'))
        pixel = Image(media_type="image/png", data="iVBORw0KGgo=")
        request = ChatRequest(
            messages=(
                text_message("m0", "system", "Be brief."),
                Message(id="m1", role="user", parts=(Text(text="Look"), pixel)),
                Message(id="m2", role="assistant", parts=(Text(text="Looking."), *calls)),
                Message(id="m3", role="tool", parts=(ToolResult(call_id="c1", content=(Text(text="a.py"),)),)),
                Message(id="m4", role="tool", parts=(ToolResult(call_id="c2", is_error=True),)),
                text_message("m5", "user", "And?"),
            ),
            tools=(Tool(name="bash", parameters={"type": "object", "properties": {}}),),
            max_output_tokens=64,
            temperature=0.0,
        )
        async with self.serving([says("Done."), calls_tool("bash")]) as model:
            assert (await model.complete(request)).text == "Done."
            assert [call.name for call in (await streamed(model, request))[1].calls] == ["bash"]
