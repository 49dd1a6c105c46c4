"""Chat models behind real endpoints, and a scripted one. Importing one happens when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from turnfold.errors import NotFoundError

PROVIDERS: Final[Mapping[str, str]] = {
    "openai": "turnfold.providers.openai_compatible:OpenAICompatibleModel",
    "anthropic": "turnfold.providers.anthropic:AnthropicModel",
    "scripted": "turnfold.providers.scripted:ScriptedModel",
}


def provider_class(name: str) -> Any:
    """Return the ChatModel class of provider `name`.

    NotFoundError names the known ones; MissingExtraError when its SDK is not installed.
    """
    if name not in PROVIDERS:
        raise NotFoundError("provider", name, f"Known: {', '.join(sorted(PROVIDERS))}.")
    module, _, attribute = PROVIDERS[name].partition(":")
    return getattr(import_module(module), attribute)
