"""SQL kept in files: statements by name, and migrations by number.

Each statement in `sql/<dialect>/*.sql` is headed by `-- name: NAME` and a comment that says why it is as it is.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

_HEADING = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


class Statement(NamedTuple):
    """A named SQL statement and why it is as it is."""

    name: str
    why: str
    sql: str


class Migration(NamedTuple):
    """One step of the schema: its number from 1, its file's name and its statements."""

    number: int
    name: str
    sql: str


@cache
def load_statements(dialect: str) -> dict[str, Statement]:
    """Return all statements of a dialect by name. Raises ValueError for a name given twice."""
    found: dict[str, Statement] = {}
    for file in sorted(_folder(dialect), key=lambda item: item.name):
        if file.name.endswith(".sql"):
            for statement in _parse(file.read_text(encoding="utf-8")):
                if statement.name in found:
                    raise ValueError(f"{file.name}: statement {statement.name!r} is there twice")
                found[statement.name] = statement
    return found


def _folder(dialect: str) -> list[Traversable]:
    return list((files("turnfold.stores") / "sql" / dialect).iterdir())


def _parse(text: str) -> list[Statement]:
    _, *pieces = _HEADING.split(text)
    return [_statement(name, piece) for name, piece in zip(pieces[::2], pieces[1::2], strict=True)]


def _statement(name: str, piece: str) -> Statement:
    lines = piece.strip().splitlines()
    why = [line.removeprefix("--").strip() for line in lines if line.startswith("--")]
    sql = [line for line in lines if not line.startswith("--")]
    return Statement(name, " ".join(why), "\n".join(sql).strip().removesuffix(";"))


@cache
def load_migrations(dialect: str) -> tuple[Migration, ...]:
    """Return a dialect's migrations in order. Raises ValueError when their numbers are not 1, 2, 3..."""
    folder = next(item for item in _folder(dialect) if item.name == "migrations")
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    steps = tuple(
        Migration(int(name[:4]), name.removesuffix(".sql"), (folder / name).read_text(encoding="utf-8"))
        for name in names
    )
    if [step.number for step in steps] != list(range(1, len(steps) + 1)):
        raise ValueError(f"migrations of {dialect} are not numbered 1, 2, 3...: {names}")
    return steps
