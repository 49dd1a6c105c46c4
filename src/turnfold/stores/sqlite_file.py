"""A SQLite store's file: opening it, telling it from other files, and bringing its schema up to date.

All functions are synchronous; `sqlite` runs them in the store's own thread.
"""

from __future__ import annotations

import errno
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

from turnfold.errors import NotFoundError, SchemaError, StoreUnavailableError
from turnfold.stores.statements import load_migrations, load_statements

APPLICATION_ID = 0x54464C44  # "TFLD", in the file's header: tells a store from any other SQLite file
DIALECT = "sqlite"

Access: TypeAlias = Literal["read", "write"]


def open_file(path: Path, *, read_only: bool, busy_timeout_ms: int) -> sqlite3.Connection:
    """Open a store's file, made and migrated as needed, and return the connection.

    With `read_only` nothing is made or migrated: NotFoundError for a missing file. Raises SchemaError for a newer schema,
    StoreUnavailableError for a file that is no store, and foreign errors as they are. A file that is refused is unchanged.
    """
    if read_only and not path.exists():
        raise NotFoundError("store file", str(path), "Check the path; reading does not make a store.")
    mode = "ro" if read_only else "rwc"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=busy_timeout_ms / 1000, isolation_level=None
    )
    try:
        version = _look(connection, path)
        _configure(connection)
        if read_only:
            _require_current(version, path)
        else:
            _retry_while_locked(lambda: _use_wal(connection), busy_timeout_ms)
            migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _configure(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")  # an acknowledged append survives a power cut
    connection.execute("PRAGMA secure_delete = ON")  # a purge leaves nothing behind in free pages
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA journal_size_limit = 8388608")


def _use_wal(connection: sqlite3.Connection) -> None:
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        connection.execute("PRAGMA journal_mode = WAL")


def _retry_while_locked(action: Callable[[], None], timeout_ms: int) -> None:
    """SQLite does not wait for its lock when it changes the journal mode, so wait here."""
    deadline = time.monotonic() + timeout_ms / 1000
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.005)


def _look(connection: sqlite3.Connection, path: Path) -> int:
    """As `_schema_of`, in a transaction: between two looks another process may have made the store."""
    with transaction(connection, "read"):
        return _schema_of(connection, path)


def _schema_of(connection: sqlite3.Connection, path: Path) -> int:
    """Return the schema's version, 0 for a new file, inside a transaction.

    Raises SchemaError, StoreUnavailableError (`not_a_store`).
    """
    application, version = (_pragma(connection, "application_id"), _pragma(connection, "user_version"))
    known = len(load_migrations(DIALECT))
    if application == APPLICATION_ID:
        if version > known:
            raise SchemaError(str(version), known)
        return version
    empty = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
    if application or version or not empty:
        raise StoreUnavailableError("not_a_store", f"{path} is a database of another program")
    return 0


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _require_current(version: int, path: Path) -> None:
    known = len(load_migrations(DIALECT))
    if version == 0:
        raise StoreUnavailableError("not_a_store", f"{path} is empty")
    if version < known:
        raise StoreUnavailableError("read_only", f"{path} has schema {version}; migrating it to {known} needs to write")


def migrate(connection: sqlite3.Connection, path: Path) -> int:
    """Run the migrations that the file lacks, all in one transaction, and return the schema's version.

    Killed at any moment, the file has the old schema or the new one.
    """
    migrations = load_migrations(DIALECT)
    if _look(connection, path) == len(migrations):
        return len(migrations)
    with transaction(connection, "write"):
        version = _schema_of(connection, path)  # again: another process may have migrated while this one waited
        for step in migrations[version:]:
            for statement in split_script(step.sql):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
    return len(migrations)


def split_script(sql: str) -> list[str]:
    """Return a script's statements one by one, so that they can run inside a transaction (triggers stay whole)."""
    statements: list[str] = []
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if line.rstrip().endswith(";") and sqlite3.complete_statement(pending):
            statements.append(pending.strip())
            pending = ""
    if any(line.strip() and not line.strip().startswith("--") for line in pending.splitlines()):
        raise ValueError(f"a script ends inside a statement: {pending.strip()[:60]!r}")
    return statements


@contextmanager
def transaction(connection: sqlite3.Connection, access: Access) -> Iterator[None]:
    """Run the body in one transaction; a writer takes the lock at once, so what it reads stays true until it commits."""
    connection.execute("BEGIN IMMEDIATE" if access == "write" else "BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite rolls back by itself on some errors, a full disk among them
            connection.execute("ROLLBACK")
        raise


def rewrite(connection: sqlite3.Connection) -> None:
    """Write the file anew, so that nothing of what was removed is left in it or in its write-ahead log."""
    connection.execute("VACUUM")
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise TimeoutError(errno.ETIMEDOUT, "another process reads an older state of it")


def run(connection: sqlite3.Connection, name: str, /, **values: Any) -> sqlite3.Cursor:
    """Execute a named statement of `sql/sqlite/`."""
    return connection.execute(load_statements(DIALECT)[name].sql, values)
