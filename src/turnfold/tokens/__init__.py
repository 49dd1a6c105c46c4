"""Token counters by name. Each is loaded when it is asked for."""

from __future__ import annotations

from difflib import get_close_matches

from turnfold.errors import ConfigError
from turnfold.ports import TokenCounter

COUNTERS = ("bpe", "o200k_base", "cl100k_base", "script_aware", "chars4")
"""The names; `bpe` is `o200k_base`, the encoding of OpenAI's current models."""


def make_counter(name: str) -> TokenCounter:
    """Return the counter of a name. Raises ConfigError for a name that there is not."""
    match name:
        case "bpe":
            return make_counter("o200k_base")
        case "o200k_base" | "cl100k_base":
            from turnfold.tokens.bpe import bpe_counter

            return bpe_counter(name)
        case "script_aware":
            from turnfold.tokens.script_aware import script_aware_counter

            return script_aware_counter()
        case "chars4":
            from turnfold.tokens.chars4 import Chars4Counter

            return Chars4Counter()
        case _:
            raise ConfigError([f"counter: there is no counter {name!r}. {_cure(name)}"])


def _cure(name: str) -> str:
    near = get_close_matches(name, COUNTERS, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"The counters are {', '.join(COUNTERS)}."
