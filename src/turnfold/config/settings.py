"""The settings of sessions and the command line: one table of names, types, defaults and meanings.

A value comes from a flag, else a `TURNFOLD_*` variable, else `turnfold.toml`, else its default; where it came from is
kept. Nothing is read here: the caller hands in what it read.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Literal

import msgspec

from turnfold.core.budget import TRIGGER_RATIO, Budget, session_budget
from turnfold.core.planners.sliding_window import PERCENTAGE
from turnfold.core.policy import Policy
from turnfold.errors import ConfigError

ENV_PREFIX = "TURNFOLD_"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting. Tokens and ms as in SPEC §4 to §10; None means the default rule named in docs/settings.md."""

    store: str = "~/.turnfold/turnfold.db"
    tenant: str = ""
    user: str = ""
    conversation: str = "default"
    counter: str = "bpe"
    context_window: int = 128_000
    max_output: int | None = None
    output_reserve: int | None = None
    safety_margin: int | None = None
    trigger_ratio: float = TRIGGER_RATIO
    mode: Literal["sliding_window", "all"] = "sliding_window"
    percentage: float = PERCENTAGE
    floor_aware: bool = True
    mask_tool_results: bool = True
    max_summary_tokens: int | None = None
    clip_chars: int = 50_000
    max_model_calls: int = 12
    max_compaction_ms: int = 120_000
    stats_in_text: bool = False
    summarizer: Literal["extractive", "model"] = "extractive"
    model: str | None = None
    base_url: str | None = None
    provider: Literal["openai", "anthropic"] = "openai"
    api_key_env: str | None = None
    system: str = ""
    system_file: str | None = None
    memory: str | None = None
    reminders: str | None = None

    @property
    def key_variable(self) -> str:
        """The environment variable that holds the endpoint's key."""
        return self.api_key_env or f"{self.provider.upper()}_API_KEY"

    def budget(self, *, exact: bool) -> Budget:
        """Return the requests' budget. Raises ConfigError when it leaves nothing."""
        return session_budget(
            self.context_window,
            exact=exact,
            max_output=self.max_output,
            output_reserve=self.output_reserve,
            safety_margin=self.safety_margin,
            trigger_ratio=self.trigger_ratio,
        )

    def policy(self) -> Policy:
        """Return the compaction policy."""
        return Policy(
            planner=self.mode,
            floor_aware=self.floor_aware,
            percentage=self.percentage,
            mask_tool_results=self.mask_tool_results and self.floor_aware,
            max_summary_tokens=self.max_summary_tokens,
            clip_chars=self.clip_chars,
            max_model_calls=self.max_model_calls,
            max_compaction_ms=self.max_compaction_ms,
            stats_in_text=self.stats_in_text,
        )


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """Settings, and for each name where its value came from: `flag`, the variable's name, the file, or `default`."""

    settings: Settings
    sources: dict[str, str]


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return ENV_PREFIX + name.upper()


def resolve(
    *,
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
    file: Mapping[str, Any],
    file_name: str = "turnfold.toml",
) -> Resolved:
    """Merge the sources. `flags` of None count as not given; `file` is the parsed document.

    Raises ConfigError with every problem at once: place, value, reason and cure.
    """
    problems = _unknown(environment, file, file_name)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for field in msgspec.structs.fields(Settings):
        given, source = _given(field.name, flags, environment, file, file_name)
        sources[field.name] = source
        if source == "default":
            continue
        try:
            values[field.name] = msgspec.convert(given, type=field.type, strict=not source.startswith(ENV_PREFIX))
        except msgspec.ValidationError as error:
            problems.append(f"{source} {field.name}: {given!r}: {error}. See docs/settings.md for what it takes.")
    if problems:
        raise ConfigError(problems)
    settings = Settings(**values)
    if problems := _out_of_range(settings, sources):
        raise ConfigError(problems)
    return Resolved(settings=settings, sources=sources)


def _given(
    name: str, flags: Mapping[str, Any], environment: Mapping[str, str], file: Mapping[str, Any], file_name: str
) -> tuple[Any, str]:
    if flags.get(name) is not None:
        return flags[name], "flag"
    if variable(name) in environment:
        return environment[variable(name)], variable(name)
    if name in file:
        return file[name], file_name
    return None, "default"


def _unknown(environment: Mapping[str, str], file: Mapping[str, Any], file_name: str) -> list[str]:
    names = [field.name for field in msgspec.structs.fields(Settings)]
    problems = [_unknown_problem(f"{file_name} {name}", name, names) for name in file if name not in names]
    known_variables = [*map(variable, names), *OTHER_VARIABLES]
    strangers = (name for name in environment if name.startswith(ENV_PREFIX) and name not in known_variables)
    return problems + [_unknown_problem(name, name, known_variables) for name in strangers]


OTHER_VARIABLES = ("TURNFOLD_CONFIG", "TURNFOLD_TEST_POSTGRES")
"""Variables that are not settings: where the settings file is, and a database for this project's own tests."""


def _unknown_problem(place: str, name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    cure = f"Did you mean {near[0]!r}?" if near else "See docs/settings.md for the names."
    return f"{place}: there is no such setting. {cure}"


_RANGES: dict[str, tuple[float, float]] = {
    "context_window": (1, float("inf")),
    "max_output": (1, float("inf")),
    "output_reserve": (0, float("inf")),
    "safety_margin": (0, float("inf")),
    "trigger_ratio": (0.01, 0.999),
    "max_summary_tokens": (90, float("inf")),  # the envelope alone takes 60 to 72
    "clip_chars": (1, float("inf")),
    "max_model_calls": (1, float("inf")),
    "max_compaction_ms": (1, float("inf")),
}


def _out_of_range(settings: Settings, sources: Mapping[str, str]) -> list[str]:
    problems = []
    for name, (low, high) in _RANGES.items():
        value = getattr(settings, name)
        if value is not None and not low <= value <= high:
            limits = f"at least {low:g}" if high == float("inf") else f"from {low:g} to {high:g}"
            problems.append(f"{sources[name]} {name}: {value} is out of range. Give a number {limits}.")
    return problems
