"""What every model behind an endpoint has: its configuration, a client opened late and closed once, keys kept out of sight."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypedDict, Unpack

from turnfold.providers.foreign_errors import shown_url
from turnfold.providers.reply_ids import new_reply_id

NO_KEY: Final = "no-key-needed"
"""Sent where no key is configured: local servers ignore it, and the SDKs insist on one."""

DEFAULT_TIMEOUT: Final = 600.0
"""Seconds; a local model may read a long transcript for minutes. Callers have limits of their own."""


class Client(Protocol):
    """The part of an SDK's client that ends it."""

    async def close(self) -> None:
        """Close the connections."""


class EndpointOptions(TypedDict, total=False):
    """What can be said of any endpoint. Window and output limit in tokens; `timeout` in seconds, for one request.

    `headers` go with every request and are treated as secrets; `extra_body` is put into every request as it is; `new_id` names
    replies.
    """

    api_key: str | None
    context_window: int | None
    max_output_tokens: int | None
    timeout: float
    headers: Mapping[str, str] | None
    extra_body: Mapping[str, Any] | None
    new_id: Callable[[], str]


class EndpointModel:
    """One model behind one endpoint, without the wire format."""

    def __init__(self, model: str, *, base_url: str, **options: Unpack[EndpointOptions]) -> None:
        self._model, self._base_url = model, base_url
        self._api_key = options.get("api_key") or NO_KEY
        self._context_window = options.get("context_window")
        self._max_output_tokens = options.get("max_output_tokens")
        self._timeout = options.get("timeout", DEFAULT_TIMEOUT)
        self._headers = dict(options.get("headers") or {})
        self._extra_body = dict(options.get("extra_body") or {})
        self._new_id = options.get("new_id", new_reply_id)
        self._open_client: Client | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r}, base_url={shown_url(self._base_url)!r})"

    @property
    def name(self) -> str:
        """The model's name as its endpoint knows it."""
        return self._model

    @property
    def context_window(self) -> int | None:
        """The configured window in tokens."""
        return self._context_window

    @property
    def max_output_tokens(self) -> int | None:
        """The configured limit on one reply in tokens."""
        return self._max_output_tokens

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; the next call opens new ones."""
        client, self._open_client = self._open_client, None
        if client is not None:
            await client.close()

    @property
    def _secrets(self) -> tuple[str, ...]:
        keys = (self._api_key,) if self._api_key != NO_KEY else ()
        return (*keys, *self._headers.values())

    def _client_options(self) -> dict[str, Any]:
        """What both SDKs' clients take; their retries are off, since retrying is the caller's policy."""
        return {
            "api_key": self._api_key,
            "base_url": self._base_url,
            "timeout": self._timeout,
            "max_retries": 0,
            "default_headers": self._headers or None,
        }

    def _output_limit(self, asked: int | None) -> int | None:
        return asked if asked is not None else self._max_output_tokens
