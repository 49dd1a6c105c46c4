"""Run every benchmark, print one Markdown table and write it to `build/bench.md`: `make bench`.

Exits with 1 when a bound is broken by more than noise. `--only NAME` runs some of them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tomllib
import venv
from importlib import import_module
from pathlib import Path

from benchmarks.measuring import BUILD, Row, skipped, table

ROOT = Path(__file__).resolve().parents[1]
OWN = ("turn", "planning", "size", "memory", "import", "extractive")
PEERS = ("counting", "peers")
"""Run in an environment of their own, in which the peers can be installed."""


def main() -> int:
    """Run, print, write, judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure turnfold.")
    parser.add_argument("--only", action="append", choices=(*OWN, *PEERS), help="run this one (may be repeated)")
    wanted = parser.parse_args().only or (*OWN, *PEERS)
    python = peers_python() if set(wanted) & set(PEERS) else sys.executable
    rows: list[Row] = []
    for name in wanted:
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        rows += in_process(python, name) if name in PEERS else import_module(f"benchmarks.bench_{name}").rows()
    text = f"{machine()}\n\n{table(rows)}"
    BUILD.mkdir(exist_ok=True)
    (BUILD / "bench.md").write_text(text, encoding="utf-8")
    print(text)
    broken = [row.what for row in rows if row.holds is False]
    for what in broken:
        print(f"broken by more than noise: {what}", file=sys.stderr)
    return 1 if broken else 0


def machine() -> str:
    """Say where this was measured."""
    return (
        f"{platform.python_implementation()} {platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} cores"
    )


def peers_python() -> str:
    """Return the interpreter of the peers' environment, made on demand; this one when it cannot be made."""
    group = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]["peers"]
    folder = BUILD / "peers"
    python, stamp = folder / "bin" / "python", folder / ".installed"
    wanted = "\n".join(group)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return str(python)
    print(f"making {folder} with {', '.join(group)}", file=sys.stderr, flush=True)
    venv.create(folder, with_pip=True, symlinks=True, clear=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*pip, "--editable", str(ROOT)], check=False, stderr=subprocess.DEVNULL).returncode:
        return sys.executable
    missing = [
        name for name in group if subprocess.run([*pip, name], check=False, stderr=subprocess.DEVNULL).returncode
    ]
    if missing:
        print(f"could not be installed: {', '.join(missing)}", file=sys.stderr)
    else:
        stamp.write_text(wanted, encoding="utf-8")
    return str(python)


def in_process(python: str, name: str) -> list[Row]:
    """Run one benchmark in another interpreter and return its rows."""
    command = [python, "-m", f"benchmarks.bench_{name}", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        return [skipped(name, (done.stderr.strip().splitlines() or ["it failed"])[-1])]
    return [Row(*row) for row in json.loads(done.stdout)]


if __name__ == "__main__":
    sys.exit(main())
