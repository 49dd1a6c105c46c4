"""From the bytes of a JSON or TOML file to plain values, keeping sight of what a plain reader would hide.

A repeated key, NaN and numbers that no computer number holds are kept visible for the check, so that they are reported
with their path and beside all other problems.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

from turnfold.errors import ConfigError

Syntax = Literal["JSON", "TOML"]

MAX_DIGITS: Final = 300
"""A longer whole number is read as infinite, so that the check reports it; far beyond any limit of a field."""

_OTHER_ENCODINGS: Final = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))


class RepeatedKeys(dict[str, Any]):
    """A JSON object that gives a key twice; the last value counts for the rest of the check."""

    repeated: tuple[str, ...] = ()


def syntax_of(name: str) -> Syntax:
    """Return the syntax that a file's name says: TOML for `.toml`, else JSON."""
    return "TOML" if name.lower().endswith(".toml") else "JSON"


def read_document(data: bytes, syntax: Syntax = "JSON", *, name: str = "the document") -> Any:
    """Return a file's value. A byte order mark is passed over. Raises ConfigError naming the file and the place in it."""
    parse: Callable[[str], Any] = _json if syntax == "JSON" else tomllib.loads
    text = _text(data, name)
    try:
        return parse(text)
    except json.JSONDecodeError as error:
        reason = f"it is not JSON ({error.msg} at line {error.lineno}, column {error.colno})"
    except tomllib.TOMLDecodeError as error:
        reason = f"it is not TOML ({error})"
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:  # a number with more digits than Python reads
        reason = f"it holds a value that cannot be read ({error})"
    raise ConfigError([f"{name}: {reason}. Correct it there."])


def _text(data: bytes, name: str) -> str:
    for mark, encoding in _OTHER_ENCODINGS:
        if data.startswith(mark):
            raise ConfigError([f"{name}: it is {encoding} text. Save it as UTF-8."])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError([f"{name}: byte {error.start + 1} is not UTF-8. Save it as UTF-8."]) from None


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_object, parse_int=_whole_number)


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    repeated = []
    for key, value in pairs:
        if key in found:
            repeated.append(key)
        found[key] = value
    if not repeated:
        return found
    marked = RepeatedKeys(found)
    marked.repeated = tuple(dict.fromkeys(repeated))
    return marked


def _whole_number(digits: str) -> int | float:
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)
