"""Wall clocks that jump back and forth, and stand still: times are wrong then, and nothing else is."""

import random
from pathlib import Path

import pytest

from tests.small_sessions import KEY, exchange, small_session
from turnfold.core.checkpoint import CheckpointKey
from turnfold.stores.memory import MemoryStore
from turnfold.stores.sqlite import SqliteStore

LINE = CheckpointKey(tenant=KEY.tenant, user=KEY.user, conversation_id=KEY.conversation_id)
YEAR_MS = 365 * 86_400_000


class JumpingClock:
    """A wall clock that is set back and forth by up to a year at every look; the other clock only ever goes on."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.ticks = 0.0

    def now_ms(self) -> int:
        """UTC, as somebody keeps setting it."""
        return 1_700_000_000_000 + self.chance.randint(-YEAR_MS, YEAR_MS)

    def monotonic_ms(self) -> float:
        """Goes on by a millisecond."""
        self.ticks += 1
        return self.ticks


class StoppedClock:
    """Both clocks stand still."""

    def now_ms(self) -> int:
        """The epoch."""
        return 0

    def monotonic_ms(self) -> float:
        """Nothing passes."""
        return 0.0


@pytest.mark.parametrize("seed", range(3))
async def test_a_jumping_clock_changes_no_conversation(seed: int, tmp_path: Path) -> None:
    """Order, versions, chain and view come from the log, never from times."""
    clock = JumpingClock(seed)
    async with (
        SqliteStore(tmp_path / "store.db", now_ms=clock.now_ms) as store,
        small_session(store, clock=clock) as session,
    ):
        for number in range(12):
            await session.append(*exchange(number))
            prepared = await session.prepare()
            assert prepared.messages[-1].id == f"a{number}"
            assert prepared.milliseconds >= 0
        ids = [entry.message.id for entry in await store.read(KEY) if entry.message.kind == "message"]
        assert ids == [message.id for number in range(12) for message in exchange(number)]
        versions = [record.version for record in await store.newest(LINE)]
        assert versions == list(range(len(versions), 0, -1))
        assert len(versions) >= 2
        assert (await store.verify()).problems == ()


async def test_a_clock_that_stands_still(tmp_path: Path) -> None:
    """Compaction needs no time to pass."""
    clock = StoppedClock()
    async with (
        SqliteStore(tmp_path / "store.db", now_ms=clock.now_ms) as store,
        small_session(store, clock=clock) as session,
    ):
        for number in range(8):
            await session.append(*exchange(number))
        assert (await session.compact()).persistence == "saved"
        assert (await store.verify()).problems == ()


class SetClock:
    """Shows what it is set to."""

    def __init__(self) -> None:
        self.now = 0

    def now_ms(self) -> int:
        """As set."""
        return self.now


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_the_time_shown_never_goes_back(kind: str, tmp_path: Path) -> None:
    """A listing's time is the latest that any write saw, whatever the clock said afterwards."""
    clock, shown = SetClock(), []
    made = (
        MemoryStore(now_ms=clock.now_ms)
        if kind == "memory"
        else SqliteStore(tmp_path / "store.db", now_ms=clock.now_ms)
    )
    async with made as store:
        for number, moment in enumerate([1_000, 500, 2_000, 1_500, 0, 2_001]):
            clock.now = moment
            await store.append(KEY, exchange(number))
            shown += [info.updated_at for info in await store.conversations(tenant=KEY.tenant)]
    assert shown == [1_000, 1_000, 2_000, 2_000, 2_000, 2_001]
