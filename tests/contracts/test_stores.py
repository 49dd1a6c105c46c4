"""Every store that turnfold ships keeps the whole contract of `Store`, as anyone else's would have to."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.postgres_server import emptied
from turnfold.ports import Store
from turnfold.stores.memory import MemoryStore
from turnfold.stores.postgres import PostgresStore
from turnfold.stores.sqlite import SqliteStore
from turnfold.testing.faulty import FaultyStore
from turnfold.testing.store_suite import StoreSuite


class TestMemoryStore(StoreSuite):
    """The store in plain Python values."""

    @pytest.fixture
    async def store(self) -> AsyncIterator[Store]:
        """A new memory store."""
        async with MemoryStore() as store:
            yield store


class TestSqliteStore(StoreSuite):
    """The store in one SQLite file."""

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        """A new file."""
        async with SqliteStore(tmp_path / "store.db") as store:
            yield store


class TestPostgresStore(StoreSuite):
    """The store in one PostgreSQL schema, made once and emptied before each test."""

    @pytest.fixture
    async def store(self, postgres: str) -> AsyncIterator[Store]:
        """An empty schema."""
        async with PostgresStore(postgres, schema="contract") as store:
            await emptied(postgres, "contract")
            yield store


class TestFaultyStore(StoreSuite):
    """The fault-injecting store without a fault is the store that it wraps."""

    @pytest.fixture
    async def store(self) -> AsyncIterator[Store]:
        """A wrapped memory store."""
        async with MemoryStore() as store:
            yield FaultyStore(store)
