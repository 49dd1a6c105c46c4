"""What PostgreSQL adds to the contract: schemas, time limits, other processes, and every foreign error mapped."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg import errors, sql

from tests.postgres_server import TABLES, emptied
from turnfold.errors import InputError, SchemaError, StoreError, StoreUnavailableError, TurnfoldError, VersionConflict
from turnfold.messages.log import ConversationKey
from turnfold.messages.model import text_message
from turnfold.stores.postgres import PostgresStore
from turnfold.stores.postgres_errors import CORRUPT_CLASSES, TOO_LARGE, map_error
from turnfold.stores.statements import load_migrations, load_statements

SCHEMA = "beyond_contract"
KEY = ConversationKey(tenant="acme", user="u", conversation_id="c")


@pytest.fixture
async def store(postgres: str) -> AsyncIterator[PostgresStore]:
    """An empty schema."""
    async with PostgresStore(postgres, schema=SCHEMA) as store:
        await emptied(postgres, SCHEMA)
        yield store


async def execute(address: str, statement: str) -> None:
    """Run a statement in the tests' schema from another connection."""
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        await connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(SCHEMA)))
        await connection.execute(statement.encode())


async def test_a_head_that_others_moved_is_noticed(postgres: str, store: PostgresStore) -> None:
    """Two processes that both remember a branch's end append in turn: no row is lost, none is written twice."""
    async with PostgresStore(postgres, schema=SCHEMA) as other:
        for number in range(6):
            writer = (store, other)[number % 2]
            await writer.append(KEY, [text_message(f"m{number}", "user", "hello")])
        with pytest.raises(VersionConflict):
            await store.append(KEY, [text_message("late", "user", "hello")], expected_position=5)
    assert [entry.message.id for entry in await store.read(KEY)] == [f"m{number}" for number in range(6)]
    assert (await store.verify(KEY)).problems == ()


async def test_a_conversation_purged_and_begun_anew_by_others(postgres: str, store: PostgresStore) -> None:
    """A remembered head of a purged conversation is not taken for the new one's, though both end at the same position."""
    await store.append(KEY, [text_message("old", "user", "first life")])
    async with PostgresStore(postgres, schema=SCHEMA) as other:
        await other.purge(KEY)
        await other.append(KEY, [text_message("new", "user", "second life")])
    await store.append(KEY, [text_message("next", "user", "goes on")])
    assert [entry.message.id for entry in await store.read(KEY)] == ["new", "next"]
    assert (await store.verify(KEY)).problems == ()


async def test_racing_writers_lose_nothing(postgres: str, store: PostgresStore) -> None:
    """Forty appends at once through three pools are all there, numbered without gap."""
    async with PostgresStore(postgres, schema=SCHEMA) as second, PostgresStore(postgres, schema=SCHEMA) as third:
        stores = (store, second, third)
        await asyncio.gather(
            *(stores[n % 3].append(KEY, [text_message(f"m{n}", "user", f"text {n}")]) for n in range(40))
        )
    entries = await store.read(KEY)
    assert sorted(entry.message.id for entry in entries) == sorted(f"m{n}" for n in range(40))
    assert [entry.position for entry in entries] == list(range(1, 41))
    assert (await store.verify(KEY)).problems == ()


async def test_a_newer_schema_is_refused_unchanged(postgres: str, store: PostgresStore) -> None:
    """A release that does not know the schema neither reads nor writes it."""
    await execute(postgres, "UPDATE schema_version SET version = version + 1")
    try:
        with pytest.raises(SchemaError):
            async with PostgresStore(postgres, schema=SCHEMA):
                pass
    finally:
        await execute(postgres, "UPDATE schema_version SET version = version - 1")
    async with PostgresStore(postgres, schema=SCHEMA):
        pass


async def test_many_processes_make_one_schema(postgres: str) -> None:
    """Stores that enter at once on an empty database make the schema once, and all of them can use it."""
    await execute(postgres, "DROP SCHEMA IF EXISTS made_at_once CASCADE")
    stores = [PostgresStore(postgres, schema="made_at_once") for _ in range(5)]
    await asyncio.gather(*(store.__aenter__() for store in stores))
    try:
        assert [await store.conversations() for store in stores] == [()] * 5
    finally:
        await asyncio.gather(*(store.__aexit__(None, None, None) for store in stores))


async def test_without_migrate_nothing_is_made(postgres: str) -> None:
    """A role that may not change schemas is told what to do."""
    with pytest.raises(StoreUnavailableError, match="migrate=True"):
        async with PostgresStore(postgres, schema="never_made", migrate=False):
            pass


async def test_a_lock_that_others_hold_ends_the_wait(postgres: str, store: PostgresStore) -> None:
    """A statement waits no longer than its limit, and says that the store is locked; afterwards it works."""
    await store.append(KEY, [text_message("m", "user", "hello")])
    async with (
        PostgresStore(postgres, schema=SCHEMA, lock_ms=200) as hurried,
        await psycopg.AsyncConnection.connect(postgres) as holder,
    ):
        await holder.execute(sql.SQL("SELECT 1 FROM {} FOR UPDATE").format(sql.Identifier(SCHEMA, "branches")))
        with pytest.raises(StoreUnavailableError) as refused:
            await hurried.append(KEY, [text_message("n", "user", "hello")])
        assert refused.value.reason == "locked"
        await holder.rollback()
        await hurried.append(KEY, [text_message("n", "user", "hello")])


async def test_lost_connections_are_replaced(postgres: str, store: PostgresStore) -> None:
    """After every connection was cut one operation may fail as `gone`; the next ones work."""
    await store.append(KEY, [text_message("m", "user", "hello")])
    await execute(
        postgres,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND application_name = 'turnfold'",
    )
    try:
        await store.read(KEY)
    except StoreUnavailableError as error:
        assert error.reason == "gone"  # noqa: PT017 - whether one fails depends on when the server's word arrives
    assert [entry.message.id for entry in await store.read(KEY)] == ["m"]


async def test_a_damaged_row_is_named(postgres: str, store: PostgresStore) -> None:
    """A row that cannot be decoded is an error with its place; verify reports it; other conversations are served."""
    await store.append(KEY, [text_message("m", "user", "hello"), text_message("n", "user", "hello")])
    await execute(postgres, "UPDATE messages SET body = '{broken' WHERE message_id = 'n'")
    with pytest.raises(StoreError, match="position 2"):
        await store.read(KEY)
    assert "position 2" in (await store.verify()).problems[0]
    await execute(postgres, "DELETE FROM messages WHERE message_id = 'm'")
    with pytest.raises(StoreError, match="position 1"):
        await store.read(KEY)


async def test_a_user_reaches_nothing_of_another(store: PostgresStore) -> None:
    """The same conversation id under another user or tenant is another conversation in every table."""
    await store.append(KEY, [text_message("m", "user", "secret")])
    await store.put_state(KEY, "pins", b"secret", expected_version=0)
    for key in (
        ConversationKey(tenant="acme", user="v", conversation_id="c"),
        ConversationKey(tenant="other", user="u", conversation_id="c"),
        ConversationKey(tenant="acmeu", user="", conversation_id="c"),
    ):
        assert await store.find(key, ["m"]) == ()
        assert await store.get_state(key, "pins") == (0, b"")
        assert await store.purge(key) == 0
    assert len(await store.read(KEY)) == 1


async def test_every_statement_names_tenant_and_user() -> None:
    """No statement over conversations reaches a row by less than its whole key; listings are within a tenant."""
    whole_store = {"every_conversation"}
    for name, statement in load_statements("postgres").items():
        assert statement.why, f"{name} does not say why it is as it is"
        if name not in whole_store:
            assert "%(tenant)s" in statement.sql, name
            assert "%(user)s" in statement.sql, name


def test_every_error_of_the_server_is_mapped() -> None:
    """Each SQLSTATE that the driver knows becomes one of turnfold's errors with a reason that has a cure."""
    known = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, psycopg.Error)]
    assert len(known) > 200
    for error in known:
        mapped = map_error(error("said\nso"), "here")
        assert isinstance(mapped, TurnfoldError)
        assert "\n" not in str(mapped)
        if isinstance(mapped, StoreUnavailableError) and mapped.reason != "failed":
            assert mapped.reason in StoreUnavailableError.cures
        elif error.sqlstate not in CORRUPT_CLASSES | TOO_LARGE:
            assert isinstance(mapped, StoreUnavailableError | InputError)


def test_an_address_that_is_none_is_refused_without_showing_it() -> None:
    """A password in a malformed address appears in no message."""
    with pytest.raises(InputError) as refused:
        PostgresStore("host=h password='hunter2")
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None


async def test_nobody_at_home() -> None:
    """A server that is not there is `gone`, soon."""
    with pytest.raises(StoreUnavailableError) as refused:
        async with PostgresStore("postgresql://127.0.0.1:1/nothing", wait_ms=2_000):
            pass
    assert refused.value.reason == "gone"


def test_emptying_knows_every_table() -> None:
    """The tests' own list of tables is the schema's."""
    script = "".join(step.sql for step in load_migrations("postgres"))
    made = {line.split()[2] for line in script.splitlines() if line.startswith("CREATE TABLE ")}
    assert made == set(TABLES)
