"""`import turnfold`, and a store with a session beside it, against `import msgspec`: whole processes, interpreter included."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.measuring import Row, in_turns, ratio_row

ROUNDS = 21


def start(code: str) -> None:
    """Run a process."""
    subprocess.run([sys.executable, "-c", code], check=True)


def rows() -> list[Row]:
    """Processes in turns."""
    ours, theirs = in_turns(ROUNDS, lambda: start("import turnfold"), lambda: start("import msgspec"), warm=2)
    return [ratio_row("`import turnfold`, whole process", ours, "`import msgspec`", theirs, bound=3)]


if __name__ == "__main__":
    from benchmarks.measuring import main

    main(rows)
