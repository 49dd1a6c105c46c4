"""What a check of a configuration finds: the place, the value there, what is wrong with it, and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from turnfold.errors import ConfigError

MISSING: Final = "nothing"
"""Shown for a value that is not there."""

SHOWN_CHARS: Final = 80

Path = tuple[str | int, ...]


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One broken rule: the steps to the field, its value as JSON (`nothing` where it is not there), why, and what to do."""

    steps: Path
    value: str
    reason: str
    cure: str

    def __str__(self) -> str:
        return f"{self.path or 'the document'}: {self.value}: {self.reason}. {self.cure}"

    @property
    def path(self) -> str:
        """The field's path as text, such as `compact.reliability.version` or `history[3].role`; empty for the document."""
        return path_text(self.steps)

    def record(self) -> dict[str, str]:
        """Return the problem as a JSON object."""
        return {"path": self.path, "value": self.value, "reason": self.reason, "cure": self.cure}


def problem_at(path: Path, value: Any, reason: str, cure: str) -> Problem:
    """Return the problem of the value at `path`."""
    return Problem(steps=path, value=shown(value), reason=reason, cure=cure)


def missing_at(path: Path, reason: str, cure: str) -> Problem:
    """Return the problem of a field that is not there."""
    return Problem(steps=path, value=MISSING, reason=reason, cure=cure)


def raise_all(problems: Sequence[Problem]) -> None:
    """Raise ConfigError with every problem, if there is one."""
    if problems:
        raise ConfigError([str(problem) for problem in problems])


def path_text(path: Path) -> str:
    """Return a path as it is written in messages; a key that is no plain word stands in brackets."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.replace("_", "").isalnum():
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step, ensure_ascii=False)}]"
    return _printable(text)


def shown(value: Any) -> str:
    """Return a value as JSON, cut to one line."""
    text = _printable(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant; upper and lower case and underscores do not matter."""
    plain = {_plain(candidate): candidate for candidate in known}
    found = get_close_matches(_plain(name), plain, n=1)
    return plain[found[0]] if found else None


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()
