"""Which API would take a conversation: its main path, written as a request for each family, under that family's rules."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from turnfold.transcripts import anthropic, openai_chat, openai_responses
from turnfold.transcripts.document import Transcript
from turnfold.transcripts.validity import CHECKS, Violation

ENCODERS: Final[dict[str, Callable[..., dict[str, Any]]]] = {
    "openai_chat": openai_chat.encode_request,
    "openai_responses": openai_responses.encode_request,
    "anthropic": anthropic.encode_request,
}
"""What writes a request, by the family's format name."""


def violations_of(
    transcript: Transcript, families: Collection[str] = tuple(ENCODERS)
) -> dict[str, tuple[Violation, ...]]:
    """Return the broken rules of each family; none when its API would take the request.

    Encoders repair what a wire format cannot say (ids, names, blank text) but leave out nothing that was said: a call without a
    result stays one, and is told here. Views are repaired before they are sent.
    """
    return {name: CHECKS[name](ENCODERS[name](transcript.messages, transcript.tools)) for name in families}
