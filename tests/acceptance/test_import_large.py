"""A large file: killed half-way and done again it is whole, without doubles, in bounded memory. `make soak` takes a gigabyte."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from benchmarks.bench_import_file import generate, import_once

SOAK_MEGABYTES = int(os.environ.get("SOAK_IMPORT_MB", "1000"))
MEMORY_LIMIT = 200_000_000
PROGRAM = [sys.executable, "-c", "from turnfold.cli.main import main; main()"]


def rows_in(store: Path) -> int:
    """Committed messages of a store that another process may be writing; 0 while there is none."""
    try:
        with closing(sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM messages").fetchone()[0])
    except sqlite3.Error:
        return 0


def kill_half_way(file: Path, store: Path, rows: int) -> None:
    """Start an import and kill it by SIGKILL once it has committed `rows` messages."""
    process = subprocess.Popen(
        [*PROGRAM, "import", str(file), "--store", str(store)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 600
        while rows_in(store) < rows and time.monotonic() < deadline:
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def check_killed_import(folder: Path, megabytes: int) -> tuple[float, int]:
    """Import, kill, import again; return the seconds and memory of the second run."""
    file, store = folder / "big.jsonl", folder / "store.db"
    with file.open("wb") as out:
        out.writelines(generate(megabytes * 1_000_000))
    with file.open("rb") as lines:
        messages = sum(1 for _ in lines) - 1
    kill_half_way(file, store, messages // 3)
    committed = rows_in(store)
    assert messages // 3 <= committed < messages
    seconds, memory = import_once(file, store)
    assert rows_in(store) == messages
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("SELECT count(DISTINCT message_id) FROM messages").fetchone()[0] == messages
        assert connection.execute("SELECT count(*) FROM branches").fetchone()[0] == 1
    verified = subprocess.run([*PROGRAM, "verify", "--store", str(store)], capture_output=True, text=True, check=False)
    assert verified.returncode == 0, verified.stderr
    return seconds, memory


def test_an_import_killed_half_way_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """20 MB, SIGKILL after a third: the second run brings the rest, nothing twice, every chain sound, memory bounded."""
    _, memory = check_killed_import(tmp_path, 20)
    assert memory < MEMORY_LIMIT


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_gigabyte_is_imported_in_bounded_memory(tmp_path: Path) -> None:
    """The same with SOAK_IMPORT_MB (1,000) megabytes; the figures are printed."""
    seconds, memory = check_killed_import(tmp_path, SOAK_MEGABYTES)
    print(f"after the kill: {seconds:.0f} s, {memory / 1e6:.0f} MB of memory")
    assert memory < MEMORY_LIMIT
