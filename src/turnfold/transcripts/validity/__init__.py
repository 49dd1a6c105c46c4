"""Whether a provider would take a request: one checker for each API family, written from its documented rules.

A checker returns every violation, none for a request that would be taken. It knows nothing of our encoders, so that it can
find them wrong. Rules that only a model or an account decides (its name, its window) are not checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from turnfold.transcripts.validity.anthropic import check_anthropic
from turnfold.transcripts.validity.openai_chat import check_openai_chat
from turnfold.transcripts.validity.openai_responses import check_openai_responses
from turnfold.transcripts.validity.rules import Violation

CHECKS: Final[dict[str, Callable[[dict[str, Any]], tuple[Violation, ...]]]] = {
    "openai_chat": check_openai_chat,
    "openai_responses": check_openai_responses,
    "anthropic": check_anthropic,
}
"""Checkers by format name."""

__all__ = ["CHECKS", "Violation", "check_anthropic", "check_openai_chat", "check_openai_responses"]
