"""Any endpoint that speaks OpenAI Chat Completions, through the official SDK: OpenAI, Ollama, vLLM, llama.cpp, gateways.

Retries are the caller's policy, so the SDK's are off. Keys appear in no message, repr or chained error. Importing this
module without the SDK raises MissingExtraError.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final, Unpack

from turnfold.errors import MissingExtraError, ProviderUnavailableError
from turnfold.messages.model import Message
from turnfold.ports import ChatRequest, TextDelta
from turnfold.providers.endpoint import EndpointModel, EndpointOptions
from turnfold.providers.foreign_errors import codes_in, mapped_errors, refused, said_by
from turnfold.transcripts.openai_chat import decode_reply, encode_tools
from turnfold.transcripts.openai_chat_messages import encode_messages

try:
    import openai
except ImportError as error:
    raise MissingExtraError("openai", "openai") from error

OPENAI_URL: Final = "https://api.openai.com/v1"


class OpenAICompatibleModel(EndpointModel):
    """One model behind one endpoint. `base_url` ends before `/chat/completions`; `timeout` is in seconds.

    `output_limit_field` names the request field of the output limit: by default `max_completion_tokens` for OpenAI itself and
    `max_tokens`, which every imitator knows, elsewhere. `send_reasoning` gives a model's own reasoning back to it.
    Nothing is opened before the first call; close with `async with`.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI_URL,
        output_limit_field: str | None = None,
        send_reasoning: bool = False,
        **endpoint: Unpack[EndpointOptions],
    ) -> None:
        super().__init__(model, base_url=base_url, **endpoint)
        own_limit = "max_completion_tokens" if base_url.rstrip("/") == OPENAI_URL else "max_tokens"
        self._limit_field = output_limit_field or own_limit
        self._send_reasoning = send_reasoning
        self._client: openai.AsyncOpenAI | None = None

    async def complete(self, request: ChatRequest) -> Message:
        """Return the reply. Raises ProviderError."""
        with mapped_errors(self._secrets):
            create: Any = self._opened().chat.completions.with_raw_response.create
            raw = await create(**self._arguments(request))
            return decode_reply(_completion(raw.http_response.content), self._new_id())

    async def stream(self, request: ChatRequest) -> AsyncIterator[TextDelta | Message]:
        """Yield text deltas, then the whole reply. Raises ProviderError, also when the stream ends too soon."""
        assembly = _Assembly()
        with mapped_errors(self._secrets):
            create: Any = self._opened().chat.completions.create
            chunks = await create(**self._arguments(request), stream=True, stream_options={"include_usage": True})
            try:
                async for chunk in chunks:
                    text = assembly.add(chunk.to_dict())
                    if text:
                        yield TextDelta(text=text)
            finally:
                await chunks.close()
            yield decode_reply(assembly.completion(), self._new_id())

    def _opened(self) -> openai.AsyncOpenAI:
        if self._open_client is None or self._client is None:
            self._open_client = self._client = openai.AsyncOpenAI(**self._client_options())
        return self._client

    def _arguments(self, request: ChatRequest) -> dict[str, Any]:
        """The SDK's arguments: what it has parameters for, and the rest as `extra_body`."""
        arguments: dict[str, Any] = {
            "model": self._model,
            "messages": encode_messages(request.messages, reasoning=self._send_reasoning),
        }
        if request.tools:
            arguments["tools"] = encode_tools(request.tools)
        limit, extra = self._output_limit(request.max_output_tokens), dict(self._extra_body)
        if limit is not None:
            extra = {self._limit_field: limit, **extra}
        if request.temperature is not None:
            arguments["temperature"] = request.temperature
        return {**arguments, "extra_body": extra} if extra else arguments


def _completion(content: bytes) -> dict[str, Any]:
    """Return the body of a completion; some gateways answer 200 with an error in it."""
    body = json.loads(content)
    if isinstance(body, dict) and body.get("error") and not body.get("choices"):
        raise refused(said_by(body) or str(body["error"]), None, codes_in(body))
    if not isinstance(body, dict):
        raise ProviderUnavailableError("the answer is not a chat completion")
    for choice in _dicts(body.get("choices")):
        _name_reasoning(choice.get("message"))
    return body


def _dicts(values: Any) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _name_reasoning(message: Any) -> None:
    """Give reasoning its usual name; vLLM, Ollama and OpenRouter call it `reasoning`."""
    reasoning = message.get("reasoning") if isinstance(message, dict) else None
    if isinstance(reasoning, str):
        del message["reasoning"]
        message.setdefault("reasoning_content", reasoning)


class _Assembly:
    """Puts a stream's chunks together into the completion that they are pieces of."""

    def __init__(self) -> None:
        self.pieces: dict[str, list[str]] = {"content": [], "reasoning_content": [], "refusal": []}
        self.calls: dict[int, dict[str, Any]] = {}
        self.top: dict[str, Any] = {}
        self.finish_reason: str | None = None

    def add(self, chunk: dict[str, Any]) -> str:
        """Take one chunk and return the text in it."""
        if chunk.get("error"):
            raise refused(said_by(chunk) or str(chunk["error"]), None, codes_in(chunk))
        self.top.update({key: chunk[key] for key in ("model", "created", "usage") if chunk.get(key) is not None})
        for choice in _dicts(chunk.get("choices"))[:1]:
            self.finish_reason = choice.get("finish_reason") or self.finish_reason
            delta = choice.get("delta")
            return self._add_delta(delta) if isinstance(delta, dict) else ""
        return ""

    def _add_delta(self, delta: dict[str, Any]) -> str:
        _name_reasoning(delta)
        for key, pieces in self.pieces.items():
            if isinstance(delta.get(key), str):
                pieces.append(delta[key])
        for call in _dicts(delta.get("tool_calls")):
            self._add_call(call)
        text = delta.get("content")
        return text if isinstance(text, str) else ""

    def _add_call(self, piece: dict[str, Any]) -> None:
        index = piece.get("index")
        if index is None:  # some servers send whole calls, unnumbered
            index = len(self.calls) if piece.get("id") or not self.calls else len(self.calls) - 1
        call = self.calls.setdefault(index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        function = piece.get("function") or {}
        call["id"] = piece.get("id") or call["id"]
        call["function"]["name"] = function.get("name") or call["function"]["name"]
        call["function"]["arguments"] += function.get("arguments") or ""

    def completion(self) -> dict[str, Any]:
        """Return the whole. Raises ProviderUnavailableError when the end never came."""
        if self.finish_reason is None:
            raise ProviderUnavailableError("the stream ended before the reply did")
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self.pieces["content"]) or None}
        for key in ("reasoning_content", "refusal"):
            if self.pieces[key]:
                message[key] = "".join(self.pieces[key])
        if self.calls:
            message["tool_calls"] = [self.calls[index] for index in sorted(self.calls)]
        return {**self.top, "choices": [{"index": 0, "message": message, "finish_reason": self.finish_reason}]}
