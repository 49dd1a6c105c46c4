"""What a fake upstream can answer: good completions, and every way in which real endpoints fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec


class Called(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call in an answer; `arguments` is JSON text."""

    name: str
    arguments: str = "{}"
    id: str = "call_fake_1"


class Says(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="says"):
    """A completion, in OpenAI's words whatever the dialect. `usage` overrides what the server counts; `after` is a delay in
    seconds.
    """

    text: str | None = ""
    finish_reason: str = "stop"
    reasoning: str | None = None
    refusal: str | None = None
    calls: tuple[Called, ...] = ()
    usage: dict[str, Any] | None = None
    after: float = 0.0


class Fails(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="fails"):
    """An error answer. With `in_stream` a stream begins well and then holds the error."""

    status: int
    message: str
    code: str | None = None
    type: str = "invalid_request_error"
    headers: dict[str, str] = {}
    in_stream: bool = False


class Hangs(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="hangs"):
    """No answer for `seconds`, or for as long as the server runs."""

    seconds: float | None = None


class Breaks(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="breaks"):
    """The connection ends: before any byte, or in the middle of an answer of `text`."""

    text: str = ""


class Sends(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="sends"):
    """Some other answer, sent as it is: an HTML page, half a JSON document."""

    body: str
    content_type: str = "application/json"
    status: int = 200


Answer: TypeAlias = Says | Fails | Hangs | Breaks | Sends
Body: TypeAlias = dict[str, Any]
Script: TypeAlias = Iterable[Answer | str] | Callable[[Body], Answer | str]


def says(text: str, **fields: Any) -> Says:
    """A good answer."""
    return Says(text=text, **fields)


def cut_off(text: str) -> Says:
    """An answer that reached its output limit."""
    return Says(text=text, finish_reason="length")


def reasons_only(reasoning: str = "Let me think about this.") -> Says:
    """Reasoning and no answer."""
    return Says(text="", reasoning=reasoning)


def calls_tool(name: str = "read_file", arguments: str = "{}") -> Says:
    """A tool call instead of an answer."""
    return Says(text=None, finish_reason="tool_calls", calls=(Called(name=name, arguments=arguments),))


def refuses(text: str = "I can't help with that.") -> Says:
    """A refusal in its own field."""
    return Says(text=None, refusal=text)


def filtered() -> Says:
    """An answer that the endpoint's filter took away."""
    return Says(text="", finish_reason="content_filter")


def rate_limited(seconds: int = 1) -> Fails:
    """429."""
    return Fails(
        status=429,
        message="Rate limit reached for requests",
        code="rate_limit_exceeded",
        type="requests",
        headers={"Retry-After": str(seconds)},
    )


def overflows(window: int = 8192, tokens: int = 9000) -> Fails:
    """The request is larger than the window, in OpenAI's words."""
    message = (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens. "
        "Please reduce the length of the messages."
    )
    return Fails(status=400, message=message, code="context_length_exceeded")


DEFAULT_ANSWER: Final = Says(text="The earlier messages were about the user's requests, which were carried out.")


def load_script(path: Path) -> list[Answer]:
    """Return the answers in a JSON file: a list of objects with `kind` (says, fails, hangs, breaks, sends) and its fields."""
    return msgspec.json.decode(path.read_bytes(), type=list[Answer])
