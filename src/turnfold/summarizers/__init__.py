"""Summarizers by name: by a model, by extraction, by script. Importing one happens when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from turnfold.errors import NotFoundError

SUMMARIZERS: Final[Mapping[str, str]] = {
    "extractive": "turnfold.summarizers.extractive:ExtractiveSummarizer",
    "model": "turnfold.summarizers.model_backed:ModelBackedSummarizer",
    "scripted": "turnfold.summarizers.scripted:ScriptedSummarizer",
    "first_characters": "turnfold.summarizers.scripted:first_characters",
}


def summarizer_factory(name: str) -> Any:
    """Return the class or function that makes the summarizer `name`. NotFoundError names the known ones."""
    if name not in SUMMARIZERS:
        raise NotFoundError("summarizer", name, f"Known: {', '.join(sorted(SUMMARIZERS))}.")
    module, _, attribute = SUMMARIZERS[name].partition(":")
    return getattr(import_module(module), attribute)
