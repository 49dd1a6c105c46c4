"""Whatever is done to a store, in whatever order, it holds what a model of plain dicts holds."""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.postgres_server import emptied
from turnfold.ports import Store
from turnfold.stores.memory import MemoryStore
from turnfold.stores.postgres import PostgresStore
from turnfold.stores.sqlite import SqliteStore
from turnfold.testing.machine import StoreMachine

SCHEMA = "machine"
STEPS = settings(max_examples=25, stateful_step_count=30)


class MemoryMachine(StoreMachine):
    """Drives the memory store."""

    def open_store(self) -> AbstractAsyncContextManager[Store]:
        """A new memory store."""
        return MemoryStore()


class SqliteMachine(StoreMachine):
    """Drives a SQLite store, closed and opened again now and then."""

    durable = True

    def __init__(self) -> None:
        self.folder = TemporaryDirectory()
        super().__init__()

    def open_store(self) -> AbstractAsyncContextManager[Store]:
        """The machine's file."""
        return SqliteStore(Path(self.folder.name) / "store.db")

    def teardown(self) -> None:
        """Close the store and remove its folder."""
        super().teardown()
        self.folder.cleanup()


class PostgresMachine(StoreMachine):
    """Drives a PostgreSQL schema, emptied at the start, its store closed and opened again now and then."""

    durable = True
    address = ""

    def __init__(self) -> None:
        asyncio.run(emptied(self.address, SCHEMA))
        super().__init__()

    def open_store(self) -> AbstractAsyncContextManager[Store]:
        """The machine's schema."""
        return PostgresStore(self.address, schema=SCHEMA)


def test_the_memory_store_and_the_model_never_differ() -> None:
    """Appends, forks, checkpoints, state and purges in any order leave what the model says."""
    run_state_machine_as_test(MemoryMachine, settings=STEPS)


def test_the_sqlite_store_and_the_model_never_differ() -> None:
    """The same on a file, closed and opened again in between."""
    run_state_machine_as_test(SqliteMachine, settings=STEPS)


def test_the_postgres_store_and_the_model_never_differ(postgres: str) -> None:
    """The same on PostgreSQL."""
    asyncio.run(made(postgres))

    class Machine(PostgresMachine):
        address = postgres

    run_state_machine_as_test(Machine, settings=settings(STEPS, max_examples=5))


async def made(address: str) -> None:
    """Make the machine's schema."""
    async with PostgresStore(address, schema=SCHEMA):
        pass
