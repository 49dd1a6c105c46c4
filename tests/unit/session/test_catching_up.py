"""What a session reads of its store on each turn: no more than what is new."""

from pathlib import Path

from tests.small_sessions import KEY, exchange, small_session
from turnfold.stores.memory import MemoryStore
from turnfold.stores.sqlite import SqliteStore
from turnfold.testing.faulty import FaultyStore


async def test_a_turn_without_compaction_looks_once() -> None:
    """Preparing a turn is one call of the store, whether or not something was appended."""
    store = FaultyStore(MemoryStore())
    async with small_session(store) as session:
        await session.append(*exchange(1))
        await session.prepare()
        for number in (2, 3):
            store.calls.clear()
            await session.append(*exchange(number))
            await session.prepare()
            await session.prepare()
            assert store.calls == {"append": 1, "changes": 2}


async def test_what_others_wrote_is_seen() -> None:
    """Rows and checkpoints of another session are in the next view, and both see the same."""
    store = MemoryStore()
    async with small_session(store) as one, small_session(store) as other:
        for number in range(1, 9):
            await one.append(*exchange(number))
        compacted = await one.compact()
        assert compacted.persistence == "saved"
        await other.append(*exchange(9))
        ids = await one.context_ids()
        assert ids == await other.context_ids()
        assert ids[-2:] == ("u9", "a9")
        assert one.checkpoint == other.checkpoint
        assert one.checkpoint is not None


async def test_a_purge_by_another_is_noticed(tmp_path: Path) -> None:
    """Nothing of a purged conversation is sent again, and what is said afterwards begins it anew."""
    async with SqliteStore(tmp_path / "store.db") as store, small_session(store) as session:
        await session.append(*exchange(1))
        await session.prepare()
        await store.purge(KEY)
        assert await session.context_ids() == ()
        await session.append(*exchange(2))
        await store.purge(KEY)
        await store.append(KEY, exchange(3)[:1])
        assert [message.id for message in (await session.prepare()).messages] == ["u3"]
        await session.append(*exchange(4))
        assert await session.context_ids() == ("u3", "u4", "a4")
