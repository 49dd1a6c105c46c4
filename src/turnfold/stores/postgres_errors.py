"""The one place where errors of PostgreSQL, its driver and its pool become turnfold's."""

from __future__ import annotations

from typing import Final

from turnfold.errors import CorruptRowError, InputError, MissingExtraError, StoreUnavailableError, TurnfoldError

try:
    import psycopg
    import psycopg_pool
except ImportError as error:
    raise MissingExtraError("postgres", "psycopg") from error

FOREIGN: Final = (
    psycopg.Error,
    psycopg.Warning,
    psycopg_pool.PoolTimeout,
    psycopg_pool.PoolClosed,
    psycopg_pool.TooManyRequests,
    OSError,
    UnicodeError,
)
"""What an operation on a database may raise besides TurnfoldError and bugs."""

STATE_REASONS: Final = {
    "25006": "read_only",  # a read-only transaction: a standby
    "42501": "read_only",  # no right on the table
    "53100": "full",
    "53200": "full",
    "53300": "locked",  # too many connections
    "55P03": "locked",  # the lock's time limit
    "57014": "locked",  # the statement's time limit
    "40001": "locked",
    "40P01": "locked",  # a deadlock that the server broke
    "3F000": "not_a_store",
    "42P01": "not_a_store",
    "42703": "not_a_store",
    "3D000": "not_a_store",
}
"""SQLSTATE codes to `StoreUnavailableError.reason`."""

CLASS_REASONS: Final = {
    "08": "gone",  # the connection
    "28": "gone",  # who we say we are
    "57": "gone",  # an operator stopped the server or this session
    "58": "gone",  # the system below it
    "53": "full",
    "54": "failed",
    "55": "locked",
    "40": "locked",
}
"""The first two characters of SQLSTATE codes, where the whole code says no more."""

CORRUPT_CLASSES: Final = frozenset({"XX001", "XX002"})
TOO_LARGE: Final = frozenset({"54000", "22001", "22003"})


def map_error(error: BaseException, place: str) -> TurnfoldError:
    """Return turnfold's error for one of `FOREIGN`; total over them. TurnfoldError is returned as it is.

    `place` names the database, without user or password.
    """
    match error:
        case TurnfoldError():
            return error
        case UnicodeError():
            return InputError(f"a name or text is not valid Unicode: {error}. Nothing was written.")
        case psycopg_pool.PoolTimeout() | psycopg_pool.TooManyRequests():
            return StoreUnavailableError("locked", f"{place}: no connection was free in time")
        case psycopg_pool.PoolClosed():
            return StoreUnavailableError("gone", f"{place} is not open; use `async with`")
        case psycopg.Error():
            return _database(error, place)
        case OSError():
            return StoreUnavailableError("gone", f"{place}: {error.strerror or error}")
        case _:
            return StoreUnavailableError("failed", f"{place}: {error!r}")


def _database(error: psycopg.Error, place: str) -> TurnfoldError:
    state = error.sqlstate
    detail = f"{place}: {_one_line(error)}"
    if state is None:  # the driver's own: the connection broke, or a value could not be sent
        if isinstance(error, psycopg.DataError):
            return InputError(f"a value cannot be stored: {_one_line(error)}. Nothing was written.")
        return StoreUnavailableError("gone" if isinstance(error, psycopg.OperationalError) else "failed", detail)
    if state in CORRUPT_CLASSES:
        return CorruptRowError(place, _one_line(error))
    if state in TOO_LARGE:
        return InputError(f"a value is larger than the database can hold: {_one_line(error)}. Nothing was written.")
    return StoreUnavailableError(STATE_REASONS.get(state) or CLASS_REASONS.get(state[:2], "failed"), detail)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
