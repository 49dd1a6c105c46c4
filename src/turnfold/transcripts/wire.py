"""What several request formats share: tool-call ids that a provider takes, arguments as objects, placeholders."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from turnfold.messages.model import Opaque
from turnfold.transcripts.naming import short_hash

_ID: Final = re.compile(r"[A-Za-z0-9_-]+")
MAX_CALL_ID: Final = 40
"""Characters that every family takes: OpenAI Chat Completions allows 40, Responses 64, Anthropic does not say."""


def call_id(given: str) -> str:
    """Return an id of a tool call that every provider takes: the given one where it is legal, else a stable stand-in."""
    if len(given) <= MAX_CALL_ID and _ID.fullmatch(given):
        return given
    return f"call_{short_hash(given)}"


def arguments_object(arguments: str) -> dict[str, Any]:
    """Return a call's arguments as a JSON object; what is not one is kept under the key `arguments`."""
    try:
        value = json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        value = arguments
    return value if isinstance(value, dict) else {"arguments": value}


def opaque_object(part: Opaque, source: str) -> dict[str, Any] | None:
    """Return what an opaque part of this format holds, None for another format's."""
    if part.source != source:
        return None
    value = json.loads(part.payload)
    return value if isinstance(value, dict) else None
