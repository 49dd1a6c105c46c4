"""The decision table of Compact, row by row, on a real SQLite file with faults and a controlled clock."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple, get_args

import msgspec
import pytest

from tests.acceptance.compact_product import SEED_OPTIONS, SEED_POLICY, replaced, seed_runtime, turns, without
from turnfold.core.checkpoint import Checkpoint, CheckpointKey
from turnfold.errors import ContextOverflowError, ProviderUnavailableError, StoreUnavailableError
from turnfold.messages.model import Message, text_message
from turnfold.runtime.compact_runtime import CompactRuntime
from turnfold.runtime.decision import Outcome, Persistence, Prepared
from turnfold.runtime.requests import CompactRequest
from turnfold.stores.sqlite import SqliteStore
from turnfold.summarizers.scripted import Answer, ScriptedSummarizer
from turnfold.testing.faulty import FaultyStore, answer_late, delay, fail_before
from turnfold.testing.virtual_time import VirtualTime, run_in_virtual_time

TABLE = Path(__file__).with_name("compact_table.md")
CAUSES = ("stored", "request", "may write", "summarizer", "save", "mode")
KEY = CheckpointKey(conversation_id="c", user="ann", scenario="rp")
OLD, NEW = "The old summary: Lia lent the copper key.", "The new summary: Lia lent the copper key and waits."
FIRST_TURNS, TURN_TOKENS = 6, 60
LAST_TURN = {"short": 10, "long": 28, "too long": 40}
"""How many turns a request carries: of 60 tokens the first six, of 200 the others."""


class Row(NamedTuple):
    """One line of the table."""

    causes: dict[str, str]
    outcome: str
    persistence: str
    called: bool
    old: str


def table_rows() -> list[Row]:
    """Read the table."""
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    start = next(index for index, row in enumerate(cells) if row[0] == "stored" and len(row) > 2)
    heads = cells[start]
    found = []
    for row in cells[start + 2 :]:
        named = dict(zip(heads, row, strict=True))
        causes = {name: named[name] for name in CAUSES}
        called = {"yes": True, "no": False}[named["model called"]]
        found.append(Row(causes, named["outcome"], named["persistence"], called, named["old one"]))
    return found


ROWS = table_rows()
VALUES = {name: sorted({row.causes[name] for row in ROWS}) for name in CAUSES}


class _Overtaken(FaultyStore):
    """A store on which another worker always saves first."""

    async def save(self, key: CheckpointKey, checkpoint: Checkpoint, **options: object) -> int:
        other = msgspec.structs.replace(checkpoint, summary="The other worker's summary.")
        await self.store.save(key, other, expected_version=checkpoint.version - 1)
        return await super().save(key, checkpoint, **options)  # type: ignore[arg-type]


def _store(kind: str, real: SqliteStore, time: VirtualTime) -> FaultyStore:
    steady = time.outside(real)
    match kind:
        case "ok":
            return FaultyStore(steady)
        case "conflict":
            return _Overtaken(steady)
        case "late, written":
            return FaultyStore(steady, answer_late("save", 60))
        case "late, lost":
            return FaultyStore(steady, delay("save", 60))
        case "fails":
            return FaultyStore(steady, fail_before("save", error=lambda: StoreUnavailableError("full", "injected")))
        case _:
            raise AssertionError(kind)


def _summarizer(kind: str) -> ScriptedSummarizer:
    answers: dict[str, Answer] = {
        "good": NEW,
        "fails": ProviderUnavailableError("down", status=503),
        "too long": "The copper key is still with the user. " * 200,
    }
    return ScriptedSummarizer(lambda _: answers[kind])


def _runtime(store: FaultyStore, summarizer: ScriptedSummarizer, time: VirtualTime, mode: str) -> CompactRuntime:
    policy = msgspec.structs.replace(SEED_POLICY, length_policy="reject")
    options = msgspec.structs.replace(SEED_OPTIONS, mode=mode)
    return seed_runtime(store, summarizer, time, policy=policy, options=options)


def _request(history: tuple[Message, ...], **changes: object) -> CompactRequest:
    request = CompactRequest(
        conversation_id=KEY.conversation_id,
        user=KEY.user,
        role_id="lia",
        persona="Lia keeps the gate.",
        fixed_prompt=(text_message("role", "system", "You are Lia, who keeps the gate."),),
        history=history,
        incoming=(text_message("now", "user", "I am back with the key."),),
    )
    return msgspec.structs.replace(request, **changes)


async def _put_on_record(stored: str, real: SqliteStore, time: VirtualTime) -> None:
    """Have version 1 made by a request over the first six turns, covering four of them; then spoil it."""
    if stored == "none":
        return
    first = _runtime(FaultyStore(time.outside(real)), ScriptedSummarizer([OLD]), time, "enforce")
    made = await first.prepare(_request(turns(1, FIRST_TURNS, TURN_TOKENS), force_compaction=True))
    assert (made.outcome, made.persistence, made.version) == ("compacted", "saved", 1)
    spoil = {
        "unknown format": "UPDATE checkpoints SET format = 99",
        "unreadable": "UPDATE checkpoints SET body = X'7B22'",
    }
    if stored in spoil:
        with sqlite3.connect(real.path) as connection:
            connection.execute(spoil[stored])
        connection.close()


def _history(stored: str, length: str) -> tuple[Message, ...]:
    history = (*turns(1, FIRST_TURNS, TURN_TOKENS), *turns(FIRST_TURNS + 1, LAST_TURN[length], 200))
    if stored == "edited":
        return replaced(history, "u2", "No, it was an iron key.")
    return without(history, "a4") if stored == "end missing" else history


class Happened(NamedTuple):
    """What one request led to. `record` holds the stored summaries by version, None for one that cannot be read."""

    outcome: str
    persistence: str
    called: bool
    old: str
    prepared: Prepared | None
    record: dict[int, str | None]


async def _happen(causes: dict[str, str], path: Path, time: VirtualTime) -> Happened:
    async with SqliteStore(path) as real:
        await _put_on_record(causes["stored"], real, time)
        summarizer = _summarizer(causes["summarizer"])
        runtime = _runtime(_store(causes["save"], real, time), summarizer, time, causes["mode"])
        request = _request(
            _history(causes["stored"], causes["request"]),
            request_type="chat" if causes["may write"] == "yes" else "suggestion",
            persona="Lia left the gate." if causes["stored"] == "other role" else "Lia keeps the gate.",
        )
        prepared = None
        try:
            prepared = await runtime.prepare(request)
        except ContextOverflowError:
            outcome, persistence = "overflow", "-"
        else:
            outcome, persistence = prepared.outcome, prepared.persistence
        await asyncio.sleep(120)  # whatever still waits ends
    record, old = _on_record(path, causes["stored"])
    return Happened(outcome, persistence, bool(summarizer.requests), old, prepared, record)


def _on_record(path: Path, stored: str) -> tuple[dict[int, str | None], str]:
    """Read what is in the file, past turnfold's own reading."""
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT version, body, invalidated FROM checkpoints ORDER BY version").fetchall()
    connection.close()
    old = "-" if stored == "none" else "kept" if rows[0][2] is None else "marked"
    return {version: _summary(bytes(body)) for version, body, _ in rows}, old


def _summary(body: bytes) -> str | None:
    try:
        return msgspec.json.decode(body, type=Checkpoint).summary
    except msgspec.DecodeError:
        return None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: ", ".join(row.causes.values()))
def test_row(row: Row, tmp_path: Path) -> None:
    """Each row of the table comes true: outcome, persistence, whether a call was paid, and what became of the old one."""
    happened = run_in_virtual_time(lambda time: _happen(row.causes, tmp_path / "t.db", time))
    assert happened[:4] == (row.outcome, row.persistence, row.called, row.old), happened.prepared
    _check_truth(row, happened)


def _check_truth(row: Row, happened: Happened) -> None:
    """What is said is so: the store holds what was saved and nothing else, and the turn's words are all there."""
    ours = [version for version, summary in happened.record.items() if summary == NEW]
    if happened.persistence == "saved":
        assert happened.prepared is not None
        assert ours == [happened.prepared.version]
    else:
        assert ours == []
    first = {"none": None, "unreadable": None}.get(row.causes["stored"], OLD)
    if row.causes["stored"] not in ("none", "unreadable"):
        assert happened.record[1] == first
    if (prepared := happened.prepared) is not None:
        assert prepared.tokens <= prepared.budget.input_budget
        assert [prepared.messages[0].id, prepared.messages[-1].id] == ["role", "now"]
        assert any(NEW in message.text for message in prepared.messages) == (prepared.outcome == "compacted")


def pairs(causes: dict[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield every two causes of a row with their values."""
    for one, other in combinations(CAUSES, 2):
        yield one, causes[one], other, causes[other]


def test_any_two_causes_meet_in_a_row() -> None:
    """Every value of a cause occurs together with every value of every other one."""
    met = {pair for row in ROWS for pair in pairs(row.causes)}
    all_pairs = {
        (one, value, other, another)
        for one, other in combinations(CAUSES, 2)
        for value in VALUES[one]
        for another in VALUES[other]
    }
    assert all_pairs - met == set()
    assert [len(VALUES[name]) for name in CAUSES] == [7, 3, 2, 3, 5, 2]


def test_every_result_occurs() -> None:
    """Every outcome and every persistence state that there is stands in the table."""
    assert set(get_args(Outcome)) <= {row.outcome for row in ROWS}
    assert set(get_args(Persistence)) <= {row.persistence for row in ROWS}


def test_the_table_says_each_thing_once() -> None:
    """No two rows have the same causes."""
    assert len({tuple(row.causes.values()) for row in ROWS}) == len(ROWS)
