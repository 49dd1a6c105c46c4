"""Rules between fields, as data: one statement of each gives the check and the JSON Schema.

A rule is judged on a document as it was written, fields that are not there included. A question about a field that is itself wrong has no
answer, and a rule without an answer says nothing: the field's own problem is reported instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from turnfold.config.problems import Path, Problem, missing_at, problem_at

Answer = bool | None
"""None: it cannot be told."""

_ABSENT = object()


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question about one field, by the names on the way to it.

    `present` and `absent` ask whether it is there; `in` and `not in` ask for `values`, and are no and yes where it is not there.
    """

    path: tuple[str, ...]
    asks: Literal["present", "absent", "in", "not in"]
    values: tuple[Any, ...] = ()

    def answer(self, document: Mapping[str, Any], wrong: frozenset[Path]) -> Answer:
        """Return the answer for a document whose fields at the paths `wrong` have problems of their own."""
        if any(self.path[:length] in wrong for length in range(1, len(self.path) + (self.asks in ("in", "not in")))):
            return None
        value = self.value(document)
        match self.asks:
            case "present":
                return value is not _ABSENT
            case "absent":
                return value is _ABSENT
            case "in":
                return _among(value, self.values)
            case "not in":
                return not _among(value, self.values)

    def value(self, document: Mapping[str, Any]) -> Any:
        """Return the field's value, or a mark that it is not there."""
        found: Any = document
        for name in self.path:
            if not isinstance(found, Mapping) or name not in found:
                return _ABSENT
            found = found[name]
        return found

    def schema(self) -> dict[str, Any]:
        """Return the question as a JSON Schema that a document fulfils where the answer is yes."""
        match self.asks:
            case "present":
                return _nested(self.path, {})
            case "absent":
                return {"not": _nested(self.path, {})}
            case "in":
                return _nested(self.path, {"enum": list(self.values)})
            case "not in":
                return {"not": _nested(self.path, {"enum": list(self.values)})}


def present(*path: str) -> Question:
    """Ask whether the field is there."""
    return Question(path=path, asks="present")


def absent(*path: str) -> Question:
    """Ask whether the field is not there."""
    return Question(path=path, asks="absent")


def among(*path: str, values: Sequence[Any]) -> Question:
    """Ask whether the field is there with one of the values."""
    return Question(path=path, asks="in", values=tuple(values))


def other_than(*path: str, values: Sequence[Any]) -> Question:
    """Ask whether the field is not there, or has none of the values."""
    return Question(path=path, asks="not in", values=tuple(values))


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Where every question of `when` is answered yes, `then` must be too; else `reason` and `cure` are said at its field."""

    when: tuple[Question, ...]
    then: Question
    reason: str
    cure: str

    def problems(self, document: Mapping[str, Any], wrong: frozenset[Path], at: Path) -> Iterator[Problem]:
        """Yield the rule's problem where the document, which stands at the path `at`, breaks it."""
        if any(question.answer(document, wrong) is not True for question in self.when):
            return
        if self.then.answer(document, wrong) is not False:
            return
        value, path = self.then.value(document), (*at, *self.then.path)
        if value is _ABSENT:
            yield missing_at(path, self.reason, self.cure)
        else:
            yield problem_at(path, value, self.reason, self.cure)

    def schema(self) -> dict[str, Any]:
        """Return the rule as JSON Schema."""
        conditions = [question.schema() for question in self.when]
        then = {**self.then.schema(), "$comment": self.reason}
        if not conditions:
            return then
        return {"if": conditions[0] if len(conditions) == 1 else {"allOf": conditions}, "then": then}


def _among(value: Any, values: tuple[Any, ...]) -> bool:
    """Equality as in JSON: a boolean equals no number."""
    return any(value == known and isinstance(value, bool) == isinstance(known, bool) for known in values)


def _nested(path: tuple[str, ...], inner: dict[str, Any]) -> dict[str, Any]:
    for name in reversed(path):
        inner = {"type": "object", "properties": {name: inner}, "required": [name]}
    return inner
