"""Errors of SQLite and the file system: every one that there is becomes one of turnfold's, with a reason that fits."""

import errno
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from turnfold.errors import CorruptRowError, InputError, StoreError, StoreUnavailableError, TurnfoldError
from turnfold.stores.foreign_errors import ERRNO_REASONS, EXTENDED_REASONS, FOREIGN, PRIMARY_REASONS, map_error

PATH = Path("/nowhere/store.db")
SPECIAL = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_TOOBIG}
"""Codes that are no StoreUnavailableError."""
NO_ERRORS = {sqlite3.SQLITE_OK, sqlite3.SQLITE_ROW, sqlite3.SQLITE_DONE}


def descend(kind: type[BaseException]) -> Iterator[type[BaseException]]:
    """Yield a class and all that derive from it."""
    yield kind
    for each in kind.__subclasses__():
        yield from descend(each)


SQLITE_CLASSES = sorted({*descend(sqlite3.Error), *descend(sqlite3.Warning)}, key=lambda kind: kind.__name__)
OS_CLASSES = sorted(
    {kind for kind in descend(OSError) if kind.__module__ == "builtins"}, key=lambda kind: kind.__name__
)


def result_codes() -> dict[str, int]:
    """Return every result code that this Python knows. Authorizer answers and other constants share the prefix."""
    raised = {
        "OK", "ROW", "DONE", "ERROR", "INTERNAL", "PERM", "ABORT", "BUSY", "LOCKED", "NOMEM", "READONLY", "INTERRUPT", "IOERR",
        "CORRUPT", "NOTFOUND", "FULL", "CANTOPEN", "PROTOCOL", "EMPTY", "SCHEMA", "TOOBIG", "CONSTRAINT", "MISMATCH", "MISUSE",
        "NOLFS", "AUTH", "FORMAT", "RANGE", "NOTADB", "NOTICE", "WARNING",
    }  # fmt: skip
    return {
        name: getattr(sqlite3, name)
        for name in dir(sqlite3)
        if name.startswith("SQLITE_") and name.split("_")[1] in raised
    }


def raised_with(code: int) -> sqlite3.Error:
    """Return an error as the driver raises it for a result code."""
    error = sqlite3.OperationalError("its own words")
    error.sqlite_errorcode = code
    return error


def test_every_result_code_has_a_place() -> None:
    """No primary code is left to a default: each is in the table or treated on its own."""
    primary = {code for code in result_codes().values() if code == code & 0xFF} - NO_ERRORS
    assert primary == PRIMARY_REASONS.keys() | SPECIAL
    assert EXTENDED_REASONS.keys() <= set(result_codes().values())


@pytest.mark.parametrize("name", sorted(result_codes()))
def test_a_result_code_becomes_ours(name: str) -> None:
    """Each code, extended ones too, gives an error of ours with the database's own words and a known reason."""
    code = result_codes()[name]
    mapped = map_error(raised_with(code), PATH)
    assert isinstance(mapped, StoreError | InputError)
    if isinstance(mapped, StoreUnavailableError):
        assert mapped.reason in {*StoreUnavailableError.cures, "failed"}
        assert str(PATH) in mapped.detail or str(PATH.parent) in mapped.detail


@pytest.mark.parametrize("kind", SQLITE_CLASSES, ids=lambda kind: str(kind.__name__))
def test_a_class_without_a_code_becomes_ours(kind: type[Exception]) -> None:
    """Errors of Python's own part of the driver carry no code and are mapped all the same."""
    assert isinstance(kind("words"), FOREIGN)
    mapped = map_error(kind("words"), PATH)
    assert isinstance(mapped, StoreUnavailableError)
    assert "words" in mapped.detail


@pytest.mark.parametrize("kind", OS_CLASSES, ids=lambda kind: str(kind.__name__))
def test_a_file_system_error_becomes_ours(kind: type[OSError]) -> None:
    """Every class of OSError is mapped, without an error number too."""
    assert isinstance(kind("words"), FOREIGN)
    assert isinstance(map_error(kind("words"), PATH), StoreUnavailableError)


@pytest.mark.parametrize("number", sorted(errno.errorcode))
def test_an_error_number_becomes_ours(number: int) -> None:
    """Every error number of this system gives a known reason."""
    mapped = map_error(OSError(number, "words"), PATH)
    assert isinstance(mapped, StoreUnavailableError)
    assert mapped.reason == ERRNO_REASONS.get(number, "gone")


def test_what_means_damage_says_so() -> None:
    """A damaged file is no unavailable one: it names the file and points at a backup."""
    for code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CORRUPT_INDEX):
        mapped = map_error(raised_with(code), PATH)
        assert isinstance(mapped, CorruptRowError)
        assert mapped.row == str(PATH)


def test_what_the_caller_gave_is_the_callers() -> None:
    """Text that is no Unicode, and values beyond what SQLite holds, are the caller's to change."""
    half = UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
    for error in (half, OverflowError("int too large"), raised_with(sqlite3.SQLITE_TOOBIG)):
        assert isinstance(map_error(error, PATH), InputError)


def test_our_own_errors_stay() -> None:
    """An error that is one of turnfold's already is not wrapped."""
    for kind in (InputError("x"), StoreError("y")):
        assert map_error(kind, PATH) is kind


def test_anything_else_is_mapped_too() -> None:
    """The map is total over whatever it is given."""
    assert isinstance(map_error(ZeroDivisionError("bug"), PATH), TurnfoldError)
