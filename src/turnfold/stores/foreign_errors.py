"""The one place where errors of SQLite and of the file system become turnfold's."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from turnfold.errors import CorruptRowError, InputError, StoreUnavailableError, TurnfoldError

FOREIGN = (sqlite3.Error, sqlite3.Warning, OSError, OverflowError, UnicodeError)
"""What an operation on a store file may raise besides TurnfoldError and bugs."""

PRIMARY_REASONS = {
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_PROTOCOL: "locked",  # the race for a lock on the WAL index was lost too often
    sqlite3.SQLITE_READONLY: "read_only",
    sqlite3.SQLITE_PERM: "read_only",
    sqlite3.SQLITE_AUTH: "read_only",
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_NOTADB: "not_a_store",
    sqlite3.SQLITE_FORMAT: "not_a_store",
    sqlite3.SQLITE_CANTOPEN: "gone",
    sqlite3.SQLITE_IOERR: "gone",
    sqlite3.SQLITE_NOTFOUND: "gone",
    sqlite3.SQLITE_NOLFS: "full",
    # What follows means a bug here or an interrupted call; nothing was written.
    sqlite3.SQLITE_ERROR: "failed",
    sqlite3.SQLITE_INTERNAL: "failed",
    sqlite3.SQLITE_ABORT: "failed",
    sqlite3.SQLITE_INTERRUPT: "failed",
    sqlite3.SQLITE_EMPTY: "failed",
    sqlite3.SQLITE_SCHEMA: "failed",
    sqlite3.SQLITE_CONSTRAINT: "failed",
    sqlite3.SQLITE_MISMATCH: "failed",
    sqlite3.SQLITE_MISUSE: "failed",
    sqlite3.SQLITE_RANGE: "failed",
    sqlite3.SQLITE_NOMEM: "failed",
    sqlite3.SQLITE_NOTICE: "failed",
    sqlite3.SQLITE_WARNING: "failed",
}
"""SQLite's primary result codes to `StoreUnavailableError.reason`. Missing on purpose: CORRUPT and TOOBIG, see `map_error`."""

EXTENDED_REASONS = {
    # A write refused by a quota or a limit on the file's size comes as an I/O error, not as FULL.
    sqlite3.SQLITE_IOERR_WRITE: "full",
    sqlite3.SQLITE_IOERR_SHMSIZE: "full",
}
"""Extended result codes that say more than their primary code."""

ERRNO_REASONS = {
    errno.EACCES: "read_only",
    errno.EPERM: "read_only",
    errno.EROFS: "read_only",
    errno.ENOSPC: "full",
    errno.EDQUOT: "full",
    errno.EFBIG: "full",
    errno.EISDIR: "not_a_store",
    errno.ETIMEDOUT: "locked",
}
"""The operating system's error numbers to reasons; all others mean `gone`."""


def map_error(error: BaseException, path: Path) -> TurnfoldError:
    """Return turnfold's error for one of `FOREIGN`; total over them. TurnfoldError is returned as it is."""
    match error:
        case TurnfoldError():
            return error
        case sqlite3.Error() | sqlite3.Warning():
            return _sqlite(error, path)
        case UnicodeError():
            return InputError(f"a name or text is not valid Unicode: {error}. Nothing was written.")
        case OverflowError():
            return InputError(f"a number or text is larger than a store can hold: {error}. Nothing was written.")
        case OSError():
            return StoreUnavailableError(ERRNO_REASONS.get(error.errno or 0, "gone"), f"{path}: {error.strerror}")
        case _:
            return StoreUnavailableError("failed", f"{path}: {error!r}")


def _sqlite(error: Exception, path: Path) -> TurnfoldError:
    code = getattr(error, "sqlite_errorcode", None)  # None: raised by Python's own part of the driver
    if code is None:
        return StoreUnavailableError("failed", f"{path}: {error}")
    primary = code & 0xFF
    if primary == sqlite3.SQLITE_CORRUPT:
        return CorruptRowError(str(path), str(error))
    if primary == sqlite3.SQLITE_TOOBIG:
        return InputError("a message is larger than a store can hold (about 1 GB). Nothing was written.")
    if primary == sqlite3.SQLITE_CANTOPEN:
        return _cannot_open(path, str(error))
    reason = EXTENDED_REASONS.get(code) or PRIMARY_REASONS.get(primary, "failed")
    return StoreUnavailableError(reason, f"{path}: {error}")


def _cannot_open(path: Path, detail: str) -> TurnfoldError:
    """SQLite does not say why it cannot open a file; the file system does."""
    if path.is_dir():
        return StoreUnavailableError("not_a_store", f"{path} is a folder")
    if not path.parent.is_dir():
        return StoreUnavailableError("gone", f"the folder {path.parent} is not there")
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.R_OK | os.W_OK)):
        return StoreUnavailableError("read_only", f"{path}: {detail}")
    return StoreUnavailableError("gone", f"{path}: {detail}")
