"""Processes that die at any moment, and many that write to one conversation at once."""

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.small_sessions import KEY, exchange, small_session
from turnfold.core.checkpoint import CheckpointKey
from turnfold.stores.sqlite import SqliteStore

LINE = CheckpointKey(tenant=KEY.tenant, user=KEY.user, conversation_id=KEY.conversation_id)


def start(*arguments: object) -> subprocess.Popen[str]:
    """Start a writer."""
    command = [sys.executable, "-m", "tests.faults.writer", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def ready(process: subprocess.Popen[str]) -> subprocess.Popen[str]:
    """Wait until a writer has its store."""
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def facts(lines: Iterable[str], kind: str) -> list[str]:
    """Return what lines of a kind say. A line that was cut off is none."""
    return [line.split()[1] for line in lines if line.endswith("\n") and line.startswith(f"{kind} ")]


def killed_after(process: subprocess.Popen[str], seconds: float) -> list[str]:
    """Kill a writer and return what it had said."""
    time.sleep(seconds)
    process.kill()
    output = process.communicate(timeout=30)[0]
    return output.splitlines(keepends=True)


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
        lines = killed_after(ready(start("append", path, f"p{number}", 60)), chance.uniform(0, 0.5))
        acknowledged |= set(facts(lines, "ack"))
        saved += map(int, facts(lines, "saved"))
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
        lines = killed_after(ready(start("create", stores)), chance.uniform(0.01, 0.12))
        for made in facts(lines, "made"):
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


def race(path: Path, processes: int, seconds: float, *, kill_some: bool = False) -> None:
    """Let processes append to and compact one conversation; every fact that they were told must be in the file."""
    writers = [start("append", path, f"p{number}", seconds) for number in range(processes)]
    writers = [ready(process) for process in writers]
    chance = random.Random(processes)
    victims = writers[::2] if kill_some else []
    for victim in victims:
        time.sleep(chance.uniform(0, seconds / len(writers)))
        victim.kill()
    lines = [process.communicate(timeout=seconds + 120)[0].splitlines(keepends=True) for process in writers]
    assert all(process.returncode == 0 for process in writers if process not in victims)
    acknowledged = {message_id for each in lines for message_id in facts(each, "ack")}
    saved = [int(version) for each in lines for version in facts(each, "saved")]
    assert all(facts(each, "ack") for each, process in zip(lines, writers, strict=True) if process not in victims)
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
