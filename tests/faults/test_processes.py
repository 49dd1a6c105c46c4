"""Processes that die at any moment, and many that write to one conversation at once."""

import asyncio
import random
import subprocess
import sys
import time
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest

from tests.conftest import ROOT
from tests.small_sessions import KEY, exchange, small_session
from turnfold.core.checkpoint import CheckpointKey
from turnfold.stores.sqlite import SqliteStore

LINE = CheckpointKey(tenant=KEY.tenant, user=KEY.user, conversation_id=KEY.conversation_id)


class Writer:
    """A process that writes, and what it said so far: to a file, which neither blocks it nor dies with it."""

    def __init__(self, folder: Path, *arguments: object) -> None:
        with NamedTemporaryFile("wb", prefix="said-", dir=folder, delete=False) as said:
            self.said = Path(said.name)
            command = [sys.executable, "-m", "tests.faults.writer", *map(str, arguments)]
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=said)

    def lines(self) -> list[str]:
        """Return the whole lines that it said; a line that was cut off is none."""
        return self.said.read_text(encoding="utf-8").split("\n")[:-1]

    def facts(self, kind: str) -> list[str]:
        """Return what its lines of a kind say."""
        return [line.split()[1] for line in self.lines() if line.startswith(f"{kind} ")]

    def ready(self) -> "Writer":
        """Wait until it has its store."""
        while not self.lines():
            assert self.process.poll() is None
            time.sleep(0.005)
        assert self.lines()[0] == "ready"
        return self

    def killed_after(self, seconds: float) -> "Writer":
        """Kill it."""
        time.sleep(seconds)
        self.process.kill()
        self.process.wait(30)
        return self


async def whole(path: Path, acknowledged: set[str], saved: list[int]) -> None:
    """The store opens, verifies, and holds every acknowledged message and version, each version once."""
    async with SqliteStore(path) as store:
        assert (await store.verify()).problems == ()
        entries = await store.read(KEY)
        assert acknowledged <= {entry.message.id for entry in entries}
        assert len(saved) == len(set(saved))
        records = await store.newest(LINE, limit=1_000_000)
        assert [record.version for record in records] == list(range(len(records), 0, -1))
        assert set(saved) <= {record.version for record in records}
        assert all(record.checkpoint is not None for record in records)
        async with small_session(store) as session:
            number = len(entries)
            await session.append(*exchange(number))
            assert (await session.context_ids())[-2:] == (f"u{number}", f"a{number}")


def kill_again_and_again(folder: Path, rounds: int) -> None:
    """Kill a writer at a random moment of its appends and compactions, on one file, and look at it each time."""
    path, chance = folder / "store.db", random.Random(rounds)
    acknowledged: set[str] = set()
    saved: list[int] = []
    for number in range(rounds):
        writer = Writer(folder, "append", path, f"p{number}", 60).ready().killed_after(chance.uniform(0, 0.5))
        acknowledged |= set(writer.facts("ack"))
        saved += map(int, writer.facts("saved"))
        asyncio.run(whole(path, acknowledged, saved))
    assert acknowledged
    assert saved


def test_a_killed_writer_loses_nothing(tmp_path: Path) -> None:
    """SIGKILL amid appends and compactions leaves a store that opens, verifies and holds all that was acknowledged."""
    kill_again_and_again(tmp_path, 3)


@pytest.mark.soak
def test_fifty_killed_writers_lose_nothing(tmp_path: Path) -> None:
    """The same, fifty times on one file."""
    kill_again_and_again(tmp_path, 50)


def kill_migrations(folder: Path, rounds: int) -> None:
    """Kill a process that makes one store after another; each file is a store, or becomes one when it is opened."""
    chance = random.Random(rounds)
    for number in range(rounds):
        stores = folder / str(number)
        stores.mkdir()
        writer = Writer(folder, "create", stores).ready().killed_after(chance.uniform(0.01, 0.12))
        for made in writer.facts("made"):
            assert Path(made).exists()
        for path in sorted(stores.glob("*.db")):
            asyncio.run(opens(path))


async def opens(path: Path) -> None:
    """A store that a killed process was making can be used."""
    async with SqliteStore(path) as store:
        await store.append(KEY, exchange(1))
        assert (await store.verify()).problems == ()


def test_a_process_killed_while_it_makes_a_store(tmp_path: Path) -> None:
    """A file whose schema was being written when its process died is opened like a new one."""
    kill_migrations(tmp_path, 2)


@pytest.mark.soak
def test_many_processes_killed_while_they_make_a_store(tmp_path: Path) -> None:
    """The same, fifty times."""
    kill_migrations(tmp_path, 50)


def make_the_same(folder: Path, processes: int, seconds: float) -> None:
    """Let processes make the same stores at the same time, one store after another, none waiting for the others."""
    stores = folder / "stores"
    stores.mkdir()
    makers = [Writer(folder, "create", stores) for _ in range(processes)]
    for maker in makers:
        maker.ready()
    for maker in makers:
        maker.killed_after(seconds / processes)
        assert [line for line in maker.lines()[1:] if not line.startswith("made ")] == []
    assert all(maker.facts("made") for maker in makers)
    for path in sorted(stores.glob("*.db")):
        asyncio.run(opens(path))


def test_processes_make_one_store_at_once(tmp_path: Path) -> None:
    """Whoever comes first makes it; the others find a store, a new file or wait, and never take it for a foreign one."""
    make_the_same(tmp_path, 3, 0.4)


@pytest.mark.soak
def test_eight_processes_make_one_store_at_once(tmp_path: Path) -> None:
    """The same, eight at once and longer."""
    make_the_same(tmp_path, 8, 5)


def race(path: Path, processes: int, seconds: float, *, kill_some: bool = False) -> None:
    """Let processes append to and compact one conversation; every fact that they were told must be in the file."""
    writers = [Writer(path.parent, "append", path, f"p{number}", seconds) for number in range(processes)]
    for writer in writers:
        writer.ready()
    chance = random.Random(processes)
    victims = writers[::2] if kill_some else []
    for victim in victims:
        victim.killed_after(chance.uniform(0, seconds / len(writers)))
    for writer in writers:
        writer.process.wait(seconds + 120)
        assert writer in victims or writer.process.returncode == 0
        assert writer in victims or writer.facts("ack")
    acknowledged = {message_id for writer in writers for message_id in writer.facts("ack")}
    saved = [int(version) for writer in writers for version in writer.facts("saved")]
    assert saved
    asyncio.run(whole(path, acknowledged, saved))


def test_processes_share_a_conversation(tmp_path: Path) -> None:
    """Three processes at once: nothing acknowledged is lost, each version has one winner, the chain verifies."""
    race(tmp_path / "store.db", 3, 2)


@pytest.mark.soak
def test_eight_processes_share_a_conversation(tmp_path: Path) -> None:
    """The same with eight processes for twenty seconds."""
    race(tmp_path / "store.db", 8, 20)


@pytest.mark.soak
def test_eight_processes_of_which_half_are_killed(tmp_path: Path) -> None:
    """The same when every second process dies at a random moment: the others go on."""
    race(tmp_path / "store.db", 8, 20, kill_some=True)
