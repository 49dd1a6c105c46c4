"""Stores of other releases: an older one is brought up to date, a newer one and a foreign file are left as they are."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from turnfold.errors import SchemaError, StoreUnavailableError
from turnfold.stores.sqlite import SqliteStore
from turnfold.stores.sqlite_file import DIALECT
from turnfold.stores.statements import load_migrations
from turnfold.testing.store_values import KEY, LINE, ids, said

SCHEMAS = Path(__file__).with_name("schemas")
"""A store of each older schema as SQL, with data: `NNNN.sql` was written by the release whose newest migration was NNNN."""

KNOWN = len(load_migrations(DIALECT))
STORED = {int(path.stem): path.read_text(encoding="utf-8") for path in SCHEMAS.glob("*.sql")}


def plant(path: Path, script: str) -> Path:
    """Make a database file from SQL."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


def schema(path: Path) -> list[tuple[str, ...]]:
    """Return everything that a file's schema consists of, spaces aside, and its version."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema").fetchall()
        version = [str(*connection.execute(f"PRAGMA {name}").fetchone()) for name in ("user_version", "application_id")]
    return [*sorted(tuple(" ".join(column.replace('"', "").split()) for column in row) for row in rows), tuple(version)]


def contents(folder: Path) -> dict[str, bytes]:
    """Return what a folder holds, but for the index and the empty log that a reader of a live file needs beside it."""
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    return {name: data for name, data in files.items() if data and not name.endswith("-shm")}


def test_each_older_schema_is_stored() -> None:
    """A migration comes with a store that it has to migrate."""
    assert STORED.keys() >= set(range(1, KNOWN))
    assert max(STORED) <= KNOWN


@pytest.mark.parametrize("version", sorted(STORED))
async def test_a_migrated_store_is_a_created_one(version: int, tmp_path: Path) -> None:
    """An older store, once opened, has the schema of a new one, and everything that was in it."""
    old = plant(tmp_path / "old.db", STORED[version])
    async with SqliteStore(old) as store, SqliteStore(tmp_path / "new.db"):
        assert (await store.verify()).problems == ()
        assert ids(await store.read(KEY)) == ["m1", "m2", "m3", "m4", "s"]
        assert ids(await store.read(KEY, branch="side")) == ["m1", "m2", "m3", "汉字 x", "y"]
        assert [entry.counts for entry in await store.read(KEY, limit=2)] == [{"bpe": 3}, {"bpe": 4}]
        record = await store.load(LINE, 1)
        assert record.checkpoint is not None
        assert record.checkpoint.summary == "a summary"
        assert await store.get_state(KEY, "pins") == (1, b'{"ids":["m1"]}')
        await store.append(KEY, said("new"), branch="side")
        assert (await store.verify()).problems == ()
    assert schema(old) == schema(tmp_path / "new.db")


async def test_reading_does_not_migrate(tmp_path: Path) -> None:
    """A store of an older schema, opened to be read only, says that it must be migrated first, and stays as it is."""
    path = plant(tmp_path / "old.db", STORED[1].replace("user_version = 1", "user_version = 0"))
    before = contents(tmp_path)
    with pytest.raises(StoreUnavailableError):
        async with SqliteStore(path, read_only=True):
            pass
    assert contents(tmp_path) == before


@pytest.mark.parametrize("read_only", [False, True])
async def test_a_newer_schema_is_refused(tmp_path: Path, read_only: bool) -> None:
    """A store of a newer release is refused with both versions named; no byte changes."""
    path = tmp_path / "newer.db"
    async with SqliteStore(path) as store:
        await store.append(KEY, said("a"))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {KNOWN + 1}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = contents(tmp_path)
    with pytest.raises(SchemaError) as caught:
        async with SqliteStore(path, read_only=read_only):
            pass
    assert (caught.value.found, caught.value.known) == (str(KNOWN + 1), KNOWN)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "content",
    [
        b"not a database at all, but long enough to look at" * 100,
        b'{"messages": []}',
        b"SQLite format 3\x00" + b"\xff" * 4096,
    ],
    ids=["text", "JSON", "a damaged header"],
)
async def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path, content: bytes) -> None:
    """A path that names some other file is refused, and the file stays as it is."""
    path = tmp_path / "file.db"
    path.write_bytes(content)
    with pytest.raises(StoreUnavailableError) as caught:
        async with SqliteStore(path):
            pass
    assert caught.value.reason == "not_a_store"
    assert path.read_bytes() == content


async def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    """A SQLite file of another program is refused and not turned into a store."""
    path = plant(tmp_path / "other.db", "CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine');")
    before = contents(tmp_path)
    with pytest.raises(StoreUnavailableError) as caught:
        async with SqliteStore(path):
            pass
    assert caught.value.reason == "not_a_store"
    assert contents(tmp_path) == before
