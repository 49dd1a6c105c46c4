"""A PostgreSQL database: its pool, its schema and its transactions. Foreign errors leave here as turnfold's own.

Importing this module without the driver raises MissingExtraError.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Concatenate, Final, ParamSpec, TypeAlias, TypeVar

from turnfold.core.checkpoint import CheckpointKey
from turnfold.errors import InputError, MissingExtraError, SchemaError, StoreUnavailableError
from turnfold.messages.log import ConversationKey
from turnfold.stores.postgres_errors import FOREIGN, map_error
from turnfold.stores.statements import Migration, load_migrations, load_statements

try:
    import psycopg
    from psycopg import sql
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg_pool import AsyncConnectionPool
except ImportError as error:
    raise MissingExtraError("postgres", "psycopg") from error

P = ParamSpec("P")
T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]

DIALECT: Final = "postgres"
MIGRATION_LOCK: Final = 0x54464C44
"""An advisory lock ("TFLD"), held while the schema is made or migrated: one process does it, the others wait."""

RETRIES: Final = 5
"""Times that a transaction is run again after the server chose it to break a deadlock; nothing of it was written."""

UniqueViolation = psycopg.errors.UniqueViolation
DEADLOCKS: Final = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)


class Connection:
    """A connection for the time of one operation: executes named statements."""

    def __init__(self, connection: psycopg.AsyncConnection[Row]) -> None:
        self.raw = connection

    @property
    def is_broken(self) -> bool:
        """Whether a statement failed in the transaction, so that no other can run in it."""
        return self.raw.info.transaction_status == psycopg.pq.TransactionStatus.INERROR

    async def rows(self, name: str, values: Mapping[str, Any]) -> list[Row]:
        """Execute a named statement and return its rows."""
        cursor = await self.raw.execute(load_statements(DIALECT)[name].sql, values, binary=True)
        return await cursor.fetchall()

    async def row(self, name: str, values: Mapping[str, Any]) -> Row | None:
        """Execute a named statement and return its first row, None for none."""
        cursor = await self.raw.execute(load_statements(DIALECT)[name].sql, values, binary=True)
        return await cursor.fetchone()

    async def run(self, name: str, values: Mapping[str, Any]) -> int:
        """Execute a named statement and return the number of rows that it wrote."""
        return (await self.raw.execute(load_statements(DIALECT)[name].sql, values)).rowcount


class Database:
    """A pool of connections to one schema of one database. Open it before use.

    Times are in ms: `wait_ms` for a free connection, `statement_ms` for one statement, `lock_ms` for a lock.
    """

    def __init__(
        self, conninfo: str, *, schema: str, pool_size: int, wait_ms: int, statement_ms: int, lock_ms: int
    ) -> None:
        try:
            facts = conninfo_to_dict(conninfo)
        except psycopg.ProgrammingError:
            # Not chained: the driver's message quotes the string, password included.
            raise InputError("the PostgreSQL address is not valid. Give postgresql://user@host/database.") from None
        self.schema = schema
        self.place = f"PostgreSQL {facts.get('host', 'local')}/{facts.get('dbname', '')}, schema {schema!r}"
        self._conninfo = make_conninfo(conninfo, application_name=facts.get("application_name", "turnfold"))
        self._limits = {
            "statement_timeout": statement_ms,
            "lock_timeout": lock_ms,
            "idle_in_transaction_session_timeout": statement_ms,
        }
        self._wait_s, self._pool_size = wait_ms / 1000, pool_size
        self._pool: AsyncConnectionPool[psycopg.AsyncConnection[Row]] | None = None

    async def open(self, *, migrate: bool) -> None:
        """Connect, and make or check the schema. Raises SchemaError, StoreUnavailableError."""
        try:
            async with await psycopg.AsyncConnection.connect(
                self._conninfo, autocommit=True, connect_timeout=max(2, round(self._wait_s))
            ) as connection:
                await self._prepare_schema(connection, migrate=migrate)
        except FOREIGN as error:
            raise map_error(error, self.place) from error
        self._pool = AsyncConnectionPool(
            self._conninfo,
            kwargs={"autocommit": True},
            min_size=1,
            max_size=self._pool_size,
            timeout=self._wait_s,
            configure=self._configure,
            open=False,
        )
        await self._pool.open()

    async def close(self) -> None:
        """Close every connection."""
        if self._pool is not None:
            pool, self._pool = self._pool, None
            await pool.close()

    @property
    def is_open(self) -> bool:
        """Whether operations can run."""
        return self._pool is not None

    async def _configure(self, connection: psycopg.AsyncConnection[Row]) -> None:
        await connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(self.schema)))
        for name, limit in self._limits.items():
            await connection.execute(sql.SQL("SET {} TO {}").format(sql.Identifier(name), sql.Literal(limit)))

    # -- schema --------------------------------------------------------------------------------------------------

    async def _prepare_schema(self, connection: psycopg.AsyncConnection[Row], *, migrate: bool) -> None:
        known = load_migrations(DIALECT)
        version = await self._version(connection)
        if version > len(known):
            raise SchemaError(str(version), len(known))
        if version == len(known):
            return
        if not migrate:
            detail = f"{self.place} has schema {version}, this release needs {len(known)}; enter it once with migrate=True, as any writing command does"
            raise StoreUnavailableError("not_a_store" if version == 0 else "read_only", detail)
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
            await self._migrate(connection, known)

    async def _migrate(self, connection: psycopg.AsyncConnection[Row], known: Sequence[Migration]) -> None:
        version = await self._version(connection)  # again: another process may have migrated while this one waited
        schema = sql.Identifier(self.schema)
        if version == 0:
            await connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
        await connection.execute(sql.SQL("SET LOCAL search_path TO {}").format(schema))
        if version == 0:
            await connection.execute("CREATE TABLE schema_version (version integer NOT NULL)")
            await connection.execute("INSERT INTO schema_version VALUES (0)")
        for step in known[version:]:
            await connection.execute(step.sql.encode())
        await connection.execute("UPDATE schema_version SET version = %s", (max(version, len(known)),))

    async def _version(self, connection: psycopg.AsyncConnection[Row]) -> int:
        """Return the schema's version, 0 for none."""
        found = await connection.execute("SELECT to_regclass(%s)", (f'"{self.schema}".schema_version',))
        if await found.fetchone() == (None,):
            return 0
        table = sql.Identifier(self.schema, "schema_version")
        row = await (await connection.execute(sql.SQL("SELECT version FROM {}").format(table))).fetchone()
        return int(row[0]) if row else 0

    # -- operations ----------------------------------------------------------------------------------------------

    async def run(
        self, operation: Callable[Concatenate[Connection, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation whose statements each stand alone."""
        return await self._attempt(lambda connection: operation(connection, *args, **kwargs))

    async def transact(
        self, operation: Callable[Concatenate[Connection, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation as one transaction."""

        async def whole(connection: Connection) -> T:
            async with connection.raw.transaction():
                return await operation(connection, *args, **kwargs)

        return await self._attempt(whole)

    async def snapshot(
        self, operation: Callable[Concatenate[Connection, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a reading operation on one snapshot."""

        async def whole(connection: Connection) -> T:
            async with connection.raw.transaction():
                await connection.raw.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                return await operation(connection, *args, **kwargs)

        return await self._attempt(whole)

    async def _attempt(self, operation: Callable[[Connection], Awaitable[T]]) -> T:
        """Run an operation, again when the server broke a deadlock with it: nothing of it was written then."""
        for attempt in range(RETRIES + 1):
            try:
                async with self._connection() as connection:
                    return await operation(connection)
            except FOREIGN as error:
                if isinstance(error, DEADLOCKS) and attempt < RETRIES:
                    continue
                mapped = map_error(error, self.place)
                if isinstance(mapped, StoreUnavailableError) and mapped.reason == "gone" and self._pool is not None:
                    await self._pool.check()  # the other connections may be as dead: the next operation gets a live one
                raise mapped from error
        raise AssertionError("unreachable: the last attempt returns or raises")

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        if self._pool is None:
            raise StoreUnavailableError("gone", f"{self.place} is not open; use `async with`")
        async with self._pool.connection() as connection:
            yield Connection(connection)


def key_values(key: ConversationKey | CheckpointKey) -> dict[str, Any]:
    """Return the parameters that every statement begins with: the key's names as UTF-8."""
    values: dict[str, Any] = {
        "tenant": key.tenant.encode(),
        "user": key.user.encode(),
        "conversation_id": key.conversation_id.encode(),
    }
    if isinstance(key, CheckpointKey):
        values["scenario"] = key.scenario.encode()
    return values
