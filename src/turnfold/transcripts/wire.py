"""What several request formats share: tool-call ids that a provider takes, arguments as objects, placeholders."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Collection
from typing import Any, Final

import msgspec

from turnfold.messages.model import Opaque
from turnfold.transcripts.naming import short_hash

_LEGAL: Final = re.compile(r"[A-Za-z0-9_-]+")
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]+")
MAX_CALL_ID: Final = 40
"""Characters that every family takes: OpenAI Chat Completions allows 40, Responses 64, Anthropic does not say."""
MAX_NAME: Final = 64
"""Characters of a tool's name that every family takes."""


class CallIds:
    """Gives the calls of one request ids that every provider takes, and their results the same.

    A legal id that is new stays as it is. Models of some servers count calls from 0 in every reply, and others put dots and
    colons into ids; both are refused by stricter providers, so such ids get a stable stand-in.
    """

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._waiting: dict[str, deque[str]] = {}

    def call(self, given: str) -> str:
        """Return the id of the next call."""
        legal = len(given) <= MAX_CALL_ID and _LEGAL.fullmatch(given)
        name = given if legal else f"call_{short_hash(given)}"
        number = 1
        while name in self._used:
            number += 1
            name = f"call_{short_hash(f'{given}|{number}')}"
        self._used.add(name)
        self._waiting.setdefault(given, deque()).append(name)
        return name

    def result(self, given: str) -> str:
        """Return the id of the call that a result answers: of calls that share an id, the first without a result."""
        waiting = self._waiting.get(given)
        return waiting.popleft() if waiting else CallIds().call(given)


def tool_name(given: str) -> str:
    """Return the name of a tool in an old call as every provider takes it."""
    if len(given) <= MAX_NAME and _LEGAL.fullmatch(given):
        return given
    return f"{_ILLEGAL.sub('_', given)[:48]}_{short_hash(given, 5)}"


def arguments_object(arguments: str) -> dict[str, Any]:
    """Return a call's arguments as a JSON object; what is not one is kept under the key `arguments`."""
    try:
        value = json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        value = arguments
    return value if isinstance(value, dict) else {"arguments": value}


def json_object(text: str | None) -> dict[str, Any] | None:
    """Return JSON text as an object, None when it is not one."""
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def opaque_object(part: Opaque, source: str) -> dict[str, Any] | None:
    """Return what an opaque part of this format holds, None for another format's."""
    return json_object(part.payload) if part.source == source else None


class KeptLayout(msgspec.Struct):
    """What a transcript keeps under its format's name: how the file was laid out, and a document's other fields."""

    layout: str = ""
    fields: dict[str, Any] = {}
    header: dict[str, Any] = {}


def kept_of(metadata: dict[str, Any], name: str, shape: type[msgspec.Struct]) -> dict[str, Any]:
    """Return what a codec kept under its name for writing a message again.

    Metadata may come from a file that someone else wrote: what does not have the codec's own `shape` is left alone.
    """
    found = metadata.get(name)
    try:
        msgspec.convert(found, shape)
    except (msgspec.ValidationError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def among(value: Any, names: Collection[str]) -> bool:
    """Return whether a raw value is one of `names`; a value that is no text (and perhaps not hashable) is none."""
    return isinstance(value, str) and value in names
