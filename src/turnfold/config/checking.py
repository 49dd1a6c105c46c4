"""Checks a plain value against the type that describes it, and reports everything that is wrong at once.

The types are frozen msgspec structs with limits in their annotations; `msgspec` itself stops at the first problem, so the walk
is made here. The same types and rules give the JSON Schema (`turnfold.config.schema`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from turnfold.config.documents import RepeatedKeys
from turnfold.config.problems import Path, Problem, missing_at, nearest_name, problem_at, raise_all
from turnfold.config.rules import Rule

T = TypeVar("T")
_type_info = cache(inspect.type_info)

NO_LIMIT = 2**31 - 1
"""An upper limit that only keeps numbers exact in every reader of JSON; messages leave it out."""

RuleTable = Mapping[type, tuple[Rule, ...]]
"""The rules between fields, by the struct that they are about."""

UnknownCure = Callable[[type, str], str | None]
"""What to do about an unknown field of a struct, where more is known than the nearest name."""


class Checker:
    """Checks values of one kind of document. `rules` hold between fields; `cure` may explain an unknown field."""

    def __init__(self, *, rules: RuleTable | None = None, cure: UnknownCure | None = None) -> None:
        self._rules, self._cure = rules or {}, cure

    def check(self, value: Any, expected: type) -> tuple[Problem, ...]:
        """Return every problem of the value, in the order of the document."""
        return tuple(self._walk(value, _type_info(expected), ()))

    def convert(self, value: Any, expected: type[T]) -> T:
        """Return the value as its frozen type. Raises ConfigError with every problem."""
        raise_all(self.check(value, expected))
        # Not strict: the check lets 5.0 pass for 5, as JSON Schema does.
        return msgspec.convert(value, type=expected, strict=False)

    def _walk(self, value: Any, kind: inspect.Type, path: Path) -> Iterator[Problem]:
        match kind:
            case inspect.Metadata():
                yield from self._walk(value, kind.type, path)
            case inspect.StructType() if isinstance(value, Mapping):
                yield from self._object(value, kind, path)
            case inspect.DictType() if isinstance(value, Mapping):
                yield from _repetitions(value, path)
                for name, item in value.items():
                    yield from self._walk(name, kind.key_type, (*path, name))
                    yield from self._walk(item, kind.value_type, (*path, name))
            case inspect.VarTupleType() if isinstance(value, list):
                if len(value) < (kind.min_length or 0):
                    yield problem_at(path, value, "it holds nothing", "Give at least one.")
                for index, item in enumerate(value):
                    yield from self._walk(item, kind.item_type, (*path, index))
            case inspect.AnyType():
                pass
            case _:
                yield from _simple(value, kind, path)

    def _object(self, value: Mapping[str, Any], kind: inspect.StructType, path: Path) -> Iterator[Problem]:
        fields = {field.encode_name: field for field in kind.fields}
        wrong: set[Path] = set()
        for problem in _repetitions(value, path):
            wrong.add(problem.steps[len(path) :])
            yield problem
        for name, item in value.items():
            if name in fields:
                for problem in self._walk(item, fields[name].type, (*path, name)):
                    wrong.add(problem.steps[len(path) :])
                    yield problem
            elif kind.forbid_unknown_fields:
                yield problem_at((*path, name), item, "there is no such field", self._unknown(kind.cls, name, fields))
        for name, field in fields.items():
            if field.required and name not in value:
                wrong.add((name,))
                yield missing_at((*path, name), "it is required", f"Give {expectation(field.type)}.")
        for rule in self._rules.get(kind.cls, ()):
            yield from rule.problems(value, frozenset(wrong), path)

    def _unknown(self, owner: type, name: str, known: Mapping[str, Any]) -> str:
        if self._cure is not None and (cure := self._cure(owner, name)):
            return cure
        near = nearest_name(name, known)
        return f"Did you mean {near!r}?" if near else f"The fields are: {', '.join(known)}."


def _repetitions(value: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    if isinstance(value, RepeatedKeys):
        for name in value.repeated:
            yield problem_at((*path, name), value[name], "the key stands there more than once", "Keep one of them.")


def _simple(value: Any, kind: inspect.Type, path: Path) -> Iterator[Problem]:
    reason = _reason(value, kind)
    if reason is not None:
        yield problem_at(path, value, reason, f"Give {expectation(kind)}.")


def _reason(value: Any, kind: inspect.Type) -> str | None:
    """Return what is wrong with a value that holds no others, or None."""
    match kind:
        case inspect.BoolType():
            return None if isinstance(value, bool) else f"it is {kind_of(value)}, not true or false"
        case inspect.IntType() | inspect.FloatType():
            return _number_problem(value, kind)
        case inspect.LiteralType():
            return None if isinstance(value, str) and value in kind.values else "it is none of the known values"
        case inspect.StrType():
            return _text_problem(value, kind)
        case _:
            return f"it is {kind_of(value)}"


def _number_problem(value: Any, kind: inspect.IntType | inspect.FloatType) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"it is {kind_of(value)}, not a number"
    if not math.isfinite(value):
        return "it is not a finite number"
    if isinstance(kind, inspect.IntType) and value != int(value):
        return "it is not a whole number"
    return _limit_problem(value, kind)


def _limit_problem(value: float, kind: inspect.IntType | inspect.FloatType) -> str | None:
    low = (kind.ge is not None and value < kind.ge) or (kind.gt is not None and value <= kind.gt)
    high = (kind.le is not None and value > kind.le) or (kind.lt is not None and value >= kind.lt)
    return "it is too small" if low else "it is too large" if high else None


def _text_problem(value: Any, kind: inspect.StrType) -> str | None:
    if not isinstance(value, str):
        return f"it is {kind_of(value)}, not text"
    if not value.isascii() and value.encode("utf-8", "replace") != value.encode("utf-8", "surrogatepass"):
        return "it holds half a character (a lone surrogate)"
    if kind.min_length is not None and len(value) < kind.min_length:
        return "it is empty" if not value else "it is too short"
    if kind.max_length is not None and len(value) > kind.max_length:
        return "it is too long"
    if kind.pattern is not None and re.search(kind.pattern, value) is None:
        return "it does not have the right form"
    return None


def kind_of(value: Any) -> str:
    """Return what a plain value is, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case Mapping():
            return "an object"
        case _:
            return f"a {type(value).__name__}"


def expectation(kind: inspect.Type) -> str:
    """Return what a type takes, in words, to go after "Give"."""
    match kind:
        case inspect.Metadata():
            example = (kind.extra or {}).get("example")
            return f"{expectation(kind.type)}, such as {example}" if example else expectation(kind.type)
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType() | inspect.FloatType():
            return _range(kind)
        case inspect.LiteralType():
            return " or ".join(f'"{value}"' for value in kind.values)
        case inspect.StrType():
            pattern = f" of the form {kind.pattern}" if kind.pattern else ""
            return f"text{pattern}"
        case inspect.VarTupleType():
            return "a list"
        case _:
            return "an object"


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    noun = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
    if kind.ge is not None and kind.le is not None and kind.le < NO_LIMIT:
        return f"{noun} from {kind.ge} to {kind.le}"
    words = (("of at least", kind.ge), ("greater than", kind.gt), ("of at most", kind.le), ("less than", kind.lt))
    limits = [f"{word} {limit}" for word, limit in words if limit is not None and limit < NO_LIMIT]
    return " ".join([noun, " and ".join(limits)]).strip()
