"""Every chat model passes the shipped contract suite whole, the real ones against a real server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from turnfold.errors import ProviderUnavailableError
from turnfold.messages.model import Message, Opaque, Part, Reasoning, Text, ToolCall
from turnfold.ports import ChatModel
from turnfold.providers.foreign_errors import refused
from turnfold.providers.openai_compatible import OpenAICompatibleModel
from turnfold.providers.scripted import HANG, Reply, ScriptedModel
from turnfold.testing.chat_model_suite import ChatModelSuite
from turnfold.testing.fake_answers import Answer, Breaks, Fails, Hangs, Says, Sends
from turnfold.testing.fake_openai import FakeOpenAI


class TestOpenAICompatible(ChatModelSuite):
    """The official SDK against a real server."""

    @asynccontextmanager
    async def serving(self, answers: Sequence[Answer]) -> AsyncIterator[ChatModel]:
        """Serve over HTTP."""
        async with (
            FakeOpenAI(answers) as server,
            OpenAICompatibleModel("fake-model", base_url=server.base_url) as model,
        ):
            yield model


class TestAnthropic(ChatModelSuite):
    """The official SDK against a real server that speaks Anthropic's dialect."""

    @asynccontextmanager
    async def serving(self, answers: Sequence[Answer]) -> AsyncIterator[ChatModel]:
        """Serve over HTTP."""
        pytest.importorskip("anthropic", reason="the extra is not installed: turnfold[anthropic]")
        from turnfold.providers.anthropic import AnthropicModel

        async with (
            FakeOpenAI(answers) as server,
            AnthropicModel("fake-model", base_url=server.base_url.removesuffix("/v1")) as model,
        ):
            yield model


class TestScripted(ChatModelSuite):
    """The real fake of the port."""

    @asynccontextmanager
    async def serving(self, answers: Sequence[Answer]) -> AsyncIterator[ChatModel]:
        """Say the same things without a server."""
        yield ScriptedModel([_reply(number, answer) for number, answer in enumerate(answers)])


def _reply(number: int, answer: Answer) -> Reply:
    match answer:
        case Says():
            return _message(number, answer)
        case Fails():
            return refused(answer.message, answer.status, (answer.code or "", answer.type))
        case Hangs():
            return HANG
        case Breaks() | Sends():
            return ProviderUnavailableError("the connection ended")


def _message(number: int, answer: Says) -> Message:
    parts: list[Part] = [Reasoning(text=answer.reasoning)] if answer.reasoning else []
    if answer.text:
        parts.append(Text(text=answer.text))
    if answer.refusal:
        parts.append(Opaque(source="openai_chat", payload=f'{{"refusal":"{answer.refusal}"}}'))
    parts += (ToolCall(id=call.id, name=call.name, arguments=call.arguments) for call in answer.calls)
    return Message(id=f"reply-{number}", role="assistant", parts=tuple(parts), stop_reason=answer.finish_reason)
