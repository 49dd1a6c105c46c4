"""The one place where the SDKs' errors become turnfold's, without the keys that they may repeat.

Both official SDKs are generated alike, so one table by class name serves them; a class that is not in it is judged by
the nearest ancestor that is. Overflow is recognized first, by typed code, status or words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from turnfold.core.overflow import is_overflow
from turnfold.errors import (
    ProviderAuthError,
    ProviderError,
    ProviderOverflowError,
    ProviderRateLimitError,
    ProviderRequestError,
    ProviderUnavailableError,
    TranscriptError,
)

Kind: TypeAlias = type[ProviderError]

KINDS: Final[Mapping[str, Kind]] = {
    # roots: raised by themselves for what the SDK found wrong before or after a request
    "OpenAIError": ProviderRequestError,
    "AnthropicError": ProviderRequestError,
    "APIError": ProviderUnavailableError,  # an error event in the middle of a stream
    "APIStatusError": ProviderRequestError,  # a status without a class of its own; see _by_status
    "APIResponseValidationError": ProviderRequestError,
    "APIWebhookValidationError": ProviderRequestError,
    "InvalidWebhookSignatureError": ProviderRequestError,
    # no answer
    "APIConnectionError": ProviderUnavailableError,
    "APITimeoutError": ProviderUnavailableError,
    "RetryableError": ProviderUnavailableError,
    "WebSocketConnectionClosedError": ProviderUnavailableError,
    "WebSocketQueueFullError": ProviderUnavailableError,
    # credentials
    "AuthenticationError": ProviderAuthError,
    "OAuthError": ProviderAuthError,
    "PermissionDeniedError": ProviderAuthError,
    "SubjectTokenProviderError": ProviderAuthError,
    "CredentialsError": ProviderAuthError,
    "IdentityTokenFileError": ProviderAuthError,
    # refused, for good
    "BadRequestError": ProviderRequestError,
    "NotFoundError": ProviderRequestError,
    "UnprocessableEntityError": ProviderRequestError,
    "PaymentRequiredError": ProviderRequestError,
    "PreconditionFailedError": ProviderRequestError,
    "RequestHeaderFieldsTooLargeError": ProviderRequestError,
    "LengthFinishReasonError": ProviderRequestError,
    "ContentFilterFinishReasonError": ProviderRequestError,
    "HTTPNotImplementedError": ProviderRequestError,
    # larger than it takes
    "RequestTooLargeError": ProviderOverflowError,
    "ContentTooLargeError": ProviderOverflowError,
    # refused, for now
    "RateLimitError": ProviderRateLimitError,
    "ConflictError": ProviderUnavailableError,
    "RequestTimeoutError": ProviderUnavailableError,
    "ClientClosedRequestError": ProviderUnavailableError,
    "InternalServerError": ProviderUnavailableError,
    "ServiceUnavailableError": ProviderUnavailableError,
    "GatewayTimeoutError": ProviderUnavailableError,
    "DeadlineExceededError": ProviderUnavailableError,
    "OverloadedError": ProviderUnavailableError,
}
_STATUS: Final[Mapping[int, Kind]] = {
    401: ProviderAuthError,
    403: ProviderAuthError,
    408: ProviderUnavailableError,
    409: ProviderUnavailableError,
    425: ProviderUnavailableError,
    429: ProviderRateLimitError,
}
_TYPES: Final[Mapping[str, Kind]] = {
    "authentication_error": ProviderAuthError,
    "permission_error": ProviderAuthError,
    "rate_limit_error": ProviderRateLimitError,
    "rate_limit_exceeded": ProviderRateLimitError,
    "insufficient_quota": ProviderRateLimitError,
    "overloaded_error": ProviderUnavailableError,
    "api_error": ProviderUnavailableError,
    "server_error": ProviderUnavailableError,
    "timeout_error": ProviderUnavailableError,
    "invalid_request_error": ProviderRequestError,
    "not_found_error": ProviderRequestError,
    "model_not_found": ProviderRequestError,
}
"""Words for what an error event without a status is about; a status says more and goes first."""

_TRANSPORT: Final = ("httpx", "httpx2", "httpcore", "httpcore2", "h11", "anyio")
_LEAST_SECRET: Final = 6


@contextmanager
def mapped_errors(secrets: Sequence[str] = ()) -> Iterator[None]:
    """Raise what fails inside as ProviderError, each of `secrets` blotted out; errors of our own code pass as they are."""
    try:
        yield
    except ProviderError as error:
        if _blot(error.detail, secrets) == error.detail:
            raise
        raise type(error)(_blot(error.detail, secrets), status=error.status) from None
    except Exception as error:
        found = provider_error(error, secrets)
        if found is None:
            raise
        raise found from None  # the SDK's error holds the request, and with it the key


def provider_error(error: Exception, secrets: Sequence[str] = ()) -> ProviderError | None:
    """Return the ProviderError for an SDK's, a transport's or an unreadable answer's error, None for any other."""
    if isinstance(error, TranscriptError | UnicodeDecodeError) or _is_json_error(error):
        return ProviderUnavailableError(f"the answer cannot be read ({_blot(str(error), secrets)})")
    kind = kind_of(type(error))
    if kind is not None:
        return _of_sdk(error, kind, secrets)
    if type(error).__module__.partition(".")[0] in _TRANSPORT or isinstance(error, OSError):
        return ProviderUnavailableError(_blot(f"{type(error).__name__}: {error}", secrets))
    return None


def _is_json_error(error: Exception) -> bool:
    return type(error).__name__ in ("JSONDecodeError", "DecodeError") and isinstance(error, ValueError)


def kind_of(error: type[BaseException]) -> Kind | None:
    """Return what an SDK's exception class stands for: its own entry, else its nearest ancestor's."""
    for ancestor in error.__mro__:
        if ancestor.__module__.partition(".")[0] in ("openai", "anthropic") and ancestor.__name__ in KINDS:
            return KINDS[ancestor.__name__]
    return None


def _of_sdk(error: Exception, kind: Kind, secrets: Sequence[str]) -> ProviderError:
    status = getattr(error, "status_code", None)
    detail = _blot(_detail(error), secrets)
    failed = isinstance(status, int) and status >= 400  # an error event in a stream comes with the stream's 200
    return refused(detail, status if failed else None, _codes(error), kind)


def refused(
    detail: str, status: int | None, codes: Sequence[str] = (), kind: Kind = ProviderUnavailableError
) -> ProviderError:
    """Return the error for what an endpoint said: `codes` are its typed words, `kind` what it is if nothing says more."""
    if any(is_overflow(detail, status=status, code=code) for code in (*codes, None)):
        return ProviderOverflowError(detail, status=status)
    if status is not None:
        return _by_status(status, kind)(detail, status=status)
    for code in codes:
        if code in _TYPES:
            return _TYPES[code](detail)
    return kind(detail)


def _by_status(status: int, kind: Kind) -> Kind:
    if kind is not ProviderRequestError and kind is not ProviderUnavailableError:
        return kind
    if status >= 500 and status != 501:
        return ProviderUnavailableError
    return _STATUS.get(status, ProviderRequestError)


def _detail(error: Exception) -> str:
    """The endpoint's own sentence where it gave one, else the SDK's with its cause."""
    said = said_by(getattr(error, "body", None))
    if said:
        return said
    message = str(getattr(error, "message", None) or error)
    cause = error.__cause__
    return f"{message} ({type(cause).__name__}: {cause})" if cause is not None and str(cause) else message


def said_by(body: Any) -> str:
    """Return the message in an error's body, whatever its layout; empty where there is none."""
    match body:
        case {"error": {"message": str() as message}} | {"error": str() as message} | {"message": str() as message}:
            return message
        case {"detail": str() as message}:
            return message
        case str():
            return body.strip()[:500]
        case _:
            return ""


def codes_in(body: Any) -> tuple[str, ...]:
    """Return the typed words in an error's body: its code and type."""
    inner = body.get("error") if isinstance(body, dict) and isinstance(body.get("error"), dict) else body
    if not isinstance(inner, dict):
        return ()
    return tuple(str(inner[key]) for key in ("code", "type") if inner.get(key) is not None)


def _codes(error: Exception) -> tuple[str, ...]:
    own = (getattr(error, "code", None), getattr(error, "type", None))
    return tuple(dict.fromkeys((*codes_in(getattr(error, "body", None)), *(str(word) for word in own if word))))


def _blot(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        if len(secret) >= _LEAST_SECRET:
            text = text.replace(secret, "***")
    return text


def shown_url(url: str) -> str:
    """Return a base URL without user, password and query, for messages and reprs."""
    head, separator, rest = url.partition("://")
    rest = rest.partition("?")[0]
    host, slash, path = rest.partition("/")
    return f"{head}{separator}{host.rpartition('@')[2]}{slash}{path}"
