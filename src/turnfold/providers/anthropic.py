"""Anthropic's Messages API, through the official SDK; works with any base URL that speaks it.

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
from turnfold.providers.foreign_errors import mapped_errors
from turnfold.transcripts.anthropic import decode_reply, encode_request

try:
    import anthropic
except ImportError as error:
    raise MissingExtraError("anthropic", "anthropic") from error

ANTHROPIC_URL: Final = "https://api.anthropic.com"
DEFAULT_OUTPUT_TOKENS: Final = 4_096
"""The API insists on an output limit; this one where neither the request nor the configuration has one."""

PARAMETERS: Final = frozenset({"model", "max_tokens", "messages", "system", "tools"})
"""What every version of the SDK has a parameter for; the rest goes into the body beside them."""


class AnthropicModel(EndpointModel):
    """One model behind the Messages API. `base_url` ends before `/v1`; `timeout` is in seconds.

    `cache` marks the stable prefixes for the provider's prompt cache. Nothing is opened before the first call; close with
    `async with`.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = ANTHROPIC_URL,
        cache: bool = False,
        **endpoint: Unpack[EndpointOptions],
    ) -> None:
        super().__init__(model, base_url=base_url, **endpoint)
        self._cache = cache
        self._client: anthropic.AsyncAnthropic | None = None

    async def complete(self, request: ChatRequest) -> Message:
        """Return the reply. Raises ProviderError."""
        with mapped_errors(self._secrets):
            create: Any = self._opened().messages.with_raw_response.create
            raw = await create(**self._arguments(request))
            return decode_reply(json.loads(raw.http_response.content), self._new_id())

    async def stream(self, request: ChatRequest) -> AsyncIterator[TextDelta | Message]:
        """Yield text deltas, then the whole reply. Raises ProviderError, also when the stream ends too soon."""
        with mapped_errors(self._secrets):
            opened: Any = self._opened().messages.stream
            async with opened(**self._arguments(request)) as events:
                async for text in events.text_stream:
                    yield TextDelta(text=text)
                final = (await events.get_final_message()).to_dict()
            if final.get("stop_reason") is None:
                raise ProviderUnavailableError("the stream ended before the reply did")
            yield decode_reply(final, self._new_id())

    def _opened(self) -> anthropic.AsyncAnthropic:
        if self._open_client is None or self._client is None:
            self._open_client = self._client = anthropic.AsyncAnthropic(**self._client_options())
        return self._client

    def _arguments(self, request: ChatRequest) -> dict[str, Any]:
        """The SDK's arguments: what it has parameters for, and the rest as `extra_body`."""
        limit = self._output_limit(request.max_output_tokens)
        fields: dict[str, Any] = {"model": self._model, "max_tokens": limit or DEFAULT_OUTPUT_TOKENS}
        if request.temperature is not None:
            fields["temperature"] = request.temperature
        fields.update(self._extra_body)
        body = encode_request(request.messages, request.tools, cache=self._cache, **fields)
        extra = {key: body.pop(key) for key in tuple(body) if key not in PARAMETERS}
        return {**body, "extra_body": extra} if extra else body
