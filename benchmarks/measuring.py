"""Rows of the table of benchmarks: how a ratio is measured, when a bound counts as broken, and how a row is printed.

Every bound is on a ratio of two things measured in turns, so that both see the same machine. A ratio is taken for each
round; a bound is broken only when three quarters of the rounds lie beyond it, for a shared machine is noisy.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

BUILD = Path(__file__).resolve().parents[1] / "build"

HEADINGS = ("what", "median", "against", "ratio (quartiles)", "bound", "holds")


class Row(NamedTuple):
    """One line of the table. `holds` None means that there is nothing to hold: a figure, or a peer that is not there."""

    what: str
    median: str
    against: str = ""
    ratio: str = ""
    bound: str = ""
    holds: bool | None = None


def skipped(what: str, why: str) -> Row:
    """A row that could not be measured, and why."""
    return Row(what, f"not measured: {why}")


def ratio_row(
    what: str, ours: Sequence[float], against: str, theirs: Sequence[float], *, bound: float | None, unit: str = "ms"
) -> Row:
    """Compare the rounds of `ours` and `theirs` (seconds, or bytes with `unit` "MB") by pairs; the ratio may be `bound`,
    or anything without one.
    """
    ratios = sorted(mine / other for mine, other in zip(ours, theirs, strict=True))
    low, middle, high = quartiles(ratios)
    return Row(
        what,
        quantity(statistics.median(ours), unit),
        f"{against}: {quantity(statistics.median(theirs), unit)}",
        f"{digits(middle)} ({digits(low)} to {digits(high)})" if len(ratios) > 1 else digits(middle),
        "" if bound is None else f"at most {bound:g}",
        None if bound is None else low <= bound,
    )


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the lower quartile, the median and the upper quartile."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def quantity(value: float, unit: str) -> str:
    """Write a value of seconds (as ms or s) or bytes (as MB) for reading."""
    scaled = {"s": value, "ms": value * 1e3, "us": value * 1e6, "MB": value / 1e6}[unit]
    return f"{digits(scaled)} {'µs' if unit == 'us' else unit}"


def digits(value: float) -> str:
    """Three significant digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def timed(action: Callable[[], object]) -> float:
    """Return the seconds that an action takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


async def timed_async(action: Callable[[], Awaitable[object]]) -> float:
    """Return the seconds that a coroutine takes."""
    start = time.perf_counter()
    await action()
    return time.perf_counter() - start


def in_turns(
    rounds: int, one: Callable[[], object], other: Callable[[], object], *, warm: int = 1
) -> tuple[list[float], list[float]]:
    """Return the seconds of both, run in turns, after `warm` rounds that do not count."""
    ours, theirs = [], []
    for number in range(-warm, rounds):
        mine, its = timed(one), timed(other)
        if number >= 0:
            ours.append(mine)
            theirs.append(its)
    return ours, theirs


@contextmanager
def on_disk() -> Iterator[Path]:
    """A new folder under `build/`, removed at the end. Not in the system's temporary folder, which may be memory: a write
    that is synchronized costs nothing there.
    """
    BUILD.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix="bench-", dir=BUILD) as folder:
        yield Path(folder)


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table."""
    cells = [HEADINGS, *((*row[:5], {True: "yes", False: "**NO**", None: ""}[row.holds]) for row in rows)]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in cells]
    return "\n".join([lines[0], "| " + " | ".join("---" for _ in HEADINGS) + " |", *lines[1:]]) + "\n"


def main(rows: Callable[[], list[Row]]) -> None:
    """Run one benchmark alone: a table, or JSON with `--json`."""
    found = rows()
    sys.stdout.write(json.dumps(found) + "\n" if "--json" in sys.argv else table(found))
