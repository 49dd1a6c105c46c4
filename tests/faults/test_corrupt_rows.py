"""Rows that something else changed: reading one is an error that names it, and `verify` reports the first difference."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from turnfold.errors import CorruptRowError
from turnfold.stores.sqlite import SqliteStore
from turnfold.testing.store_values import KEY, LINE, checkpoint, numbered, said


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """The file of a closed store: m1 to m9, a branch from 5, a checkpoint over 4, state, and a neighbor."""
    file = tmp_path / "store.db"
    async with SqliteStore(file) as store:
        await store.append(KEY, numbered("m", 9), counts={"bpe": range(9)})
        await store.fork(KEY, "side", position=5)
        await store.append(KEY, numbered("x", 3), branch="side")
        await store.save(LINE, checkpoint(1, numbered("m", 4)), expected_version=0, rows=said("s", kind="summary"))
        await store.append(type(KEY)(conversation_id="neighbor"), numbered("n", 2))
    return file


def tamper(path: Path, sql: str) -> None:
    """Change the file behind the store's back; one row at least must change."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        assert connection.execute(sql).rowcount > 0
        connection.commit()


UNREADABLE = {
    "cut off": "UPDATE messages SET body = substr(body, 1, 20) WHERE message_id = 'm3'",
    "empty": "UPDATE messages SET body = x'' WHERE message_id = 'm3'",
    "not UTF-8": "UPDATE messages SET body = CAST(replace(CAST(body AS TEXT), 'this', CAST(x'ff' AS TEXT)) AS BLOB) WHERE message_id = 'm3'",
    "another shape": "UPDATE messages SET body = CAST('[]' AS BLOB) WHERE message_id = 'm3'",
    "an unknown role": 'UPDATE messages SET body = CAST(\'{"role":"king","parts":[]}\' AS BLOB) WHERE message_id = \'m3\'',
    "counts": "UPDATE messages SET counts = '{' WHERE message_id = 'm3'",
    "a short chain": "UPDATE messages SET chain = x'00' WHERE message_id = 'm3'",
    "another kind": "UPDATE messages SET chained = 0 WHERE message_id = 'm3'",
    "missing": "DELETE FROM messages WHERE message_id = 'm3'",
}


@pytest.mark.parametrize("damage", UNREADABLE)
async def test_an_unreadable_row_is_named(path: Path, damage: str) -> None:
    """Reading over it raises CorruptRowError with the conversation and the row; what lies elsewhere can be read."""
    tamper(path, UNREADABLE[damage])
    async with SqliteStore(path) as store:
        for branch in ("main", "side"):
            with pytest.raises(CorruptRowError) as caught:
                await store.read(KEY, branch=branch)
            assert str(KEY) in caught.value.row
            assert "m3" in caught.value.row or "position 3" in caught.value.row
        with pytest.raises(CorruptRowError):
            await store.changes(LINE, after=2)
        assert len(await store.read(KEY, after=3)) == 7
        (problem,) = (await store.verify()).problems
        assert "m3" in problem or "position 3" in problem
        assert (await store.verify(type(KEY)(conversation_id="neighbor"))).problems == ()


CHANGED = {
    "text": ("UPDATE messages SET body = CAST(replace(body, 'this', 'THIS') AS BLOB) WHERE position = 6", "m6"),
    "the text of several": (
        "UPDATE messages SET body = CAST(replace(body, 'this', 'THIS') AS BLOB) WHERE position > 6",
        "m7",
    ),
    "a role": (
        "UPDATE messages SET body = CAST(replace(body, '\"user\"', '\"system\"') AS BLOB) WHERE message_id = 'm2'",
        "m2",
    ),
    "a chain": ("UPDATE messages SET chain = zeroblob(length(chain)) WHERE message_id = 'm8'", "m8"),
    "a seq": ("UPDATE messages SET seq = 7 WHERE message_id = 'm8'", "m8"),
    "two rows' bodies": (
        (
            "UPDATE messages SET body = (SELECT body FROM messages AS o WHERE o.message_id = "
            "CASE messages.message_id WHEN 'm5' THEN 'm6' ELSE 'm5' END AND o.conversation = messages.conversation) "
            "WHERE message_id IN ('m5', 'm6')"
        ),
        "m5",
    ),
    "a head": ("UPDATE branches SET position = position - 1 WHERE name = 'side'", "side"),
    "a head's chain": ("UPDATE branches SET chain = zeroblob(length(chain)) WHERE name = 'side'", "side"),
    "a fork": ("UPDATE branches SET fork_seq = fork_seq - 1 WHERE name = 'side'", "side"),
    "a checkpoint": (
        "UPDATE checkpoints SET body = CAST(replace(body, '\"count\":4', '\"count\":5') AS BLOB)",
        "version 1",
    ),
    "an unreadable checkpoint": ("UPDATE checkpoints SET body = x'7b'", "version 1"),
    "a checkpoint's number": ("UPDATE checkpoints SET version = 2", "version"),
}


@pytest.mark.parametrize("change", CHANGED)
async def test_verify_reports_the_first_difference(path: Path, change: str) -> None:
    """Whatever was changed, `verify` names the first place that differs, once for the conversation, and no other."""
    sql, place = CHANGED[change]
    tamper(path, sql)
    async with SqliteStore(path) as store:
        (problem,) = (await store.verify(KEY)).problems
        assert place in problem
        assert str(KEY) in problem
        assert (await store.verify(type(KEY)(conversation_id="neighbor"))).conversations == 1


async def test_damaged_pages_are_reported(path: Path) -> None:
    """Pages that were overwritten are an error of ours or a problem in the report, never a wrong answer."""
    overwrite(path, 8192)
    async with SqliteStore(path) as store:
        try:
            found = (await store.verify()).problems
        except CorruptRowError as error:
            found = (str(error),)
    assert found


def overwrite(path: Path, after: int) -> None:
    """Write nonsense over the file from a place on."""
    data = path.read_bytes()
    path.write_bytes(data[:after] + b"\xa5" * (len(data) - after))


async def test_an_unreadable_checkpoint_is_named(path: Path) -> None:
    """A checkpoint that cannot be read is an error with its key and version; its messages are still there."""
    tamper(path, "UPDATE checkpoints SET body = x'7b'")
    async with SqliteStore(path) as store:
        for call in (store.load(LINE, 1), store.newest(LINE)):
            with pytest.raises(CorruptRowError, match="version 1"):
                await call
        assert len(await store.read(KEY)) == 10
