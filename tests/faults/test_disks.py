"""Disks that are full or read-only: one clear error, nothing changed, and everything works again afterwards."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.faults.filling import fill_and_go_on, refused
from tests.small_sessions import KEY, exchange
from turnfold.errors import NotFoundError, StoreUnavailableError
from turnfold.stores.sqlite import SqliteStore


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte; skips where it cannot be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def remount(folder: Path, options: str) -> None:
    """Change how a file system is mounted."""
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)


async def test_a_full_disk(small_disk: Path) -> None:
    """On a disk without space every write is refused as `full`, reads go on, and writes do once there is space."""
    await fill_and_go_on(
        small_disk / "store.db", full=lambda: None, free=lambda: remount(small_disk, "size=8m"), reason="full"
    )


def test_a_limit_on_file_sizes(tmp_path: Path) -> None:
    """A quota that ends in the middle of a file is a full disk too."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.full_disk", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


async def test_a_disk_that_becomes_read_only(small_disk: Path) -> None:
    """A disk that the system made read-only refuses writes as such and is read on; nothing changes."""
    path = small_disk / "store.db"
    async with SqliteStore(path) as store:
        await store.append(KEY, exchange(0))
    remount(small_disk, "ro")
    with pytest.raises(StoreUnavailableError) as caught:
        async with SqliteStore(path):
            pass
    assert caught.value.reason == "read_only"
    remount(small_disk, "rw")
    async with SqliteStore(path) as store:
        await store.append(KEY, exchange(1))
        assert (await store.verify()).problems == ()


async def test_a_store_opened_to_be_read(tmp_path: Path) -> None:
    """With `read_only` everything can be read, every write is refused as `read_only`, and nothing comes to be."""
    path = tmp_path / "store.db"
    with pytest.raises(NotFoundError):
        async with SqliteStore(path, read_only=True):
            pass
    async with SqliteStore(path) as store:
        await store.append(KEY, exchange(0))
    async with SqliteStore(path, read_only=True) as store:
        before = await store.read(KEY)
        for write in (
            store.append(KEY, exchange(1)),
            store.fork(KEY, "side", position=1),
            store.put_state(KEY, "pins", b"", expected_version=0),
            store.purge(KEY),
            store.vacuum(),
        ):
            await refused(write, "read_only")
        assert await store.read(KEY) == before
        assert (await store.verify()).problems == ()


@pytest.fixture
def read_only_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that may not be written to; skips for root, who may write anywhere."""
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    tmp_path.chmod(0o500)
    yield tmp_path
    tmp_path.chmod(0o700)


async def test_a_read_only_folder(read_only_folder: Path) -> None:
    """A folder that may not be written to is named in one clear error."""
    with pytest.raises(StoreUnavailableError) as caught:
        async with SqliteStore(read_only_folder / "store.db"):
            pass
    assert caught.value.reason == "read_only"


async def test_places_where_no_store_can_be(tmp_path: Path) -> None:
    """A folder, and a path through a folder that is not there, are refused with a reason that says so."""
    for path, reason in ((tmp_path, "not_a_store"), (tmp_path / "none" / "store.db", "gone")):
        with pytest.raises(StoreUnavailableError) as caught:
            async with SqliteStore(path):
                pass
        assert caught.value.reason == reason
