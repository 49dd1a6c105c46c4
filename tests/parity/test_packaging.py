"""The envelope of a summary is the agent seed's, word for word, in both modes, with and without statistics."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.parity.lines import lines
from turnfold.core.envelope import CompactionStats, alert_text, compaction_metadata, iso_time, raw_summary
from turnfold.messages.model import Message, Text


def test_every_envelope_is_the_seeds(vectors: Path) -> None:
    """Type, message and statistics, with the statistics in the text, the time apart: no mismatch."""
    mismatches, cases = [], 0
    for number, vector in enumerate(lines(vectors / "packaging.jsonl"), 1):
        stats = CompactionStats(**vector["stats"]) if vector["stats"] else None
        cases += 1
        text = alert_text(vector["summary"], vector["mode"], stats=stats, stats_in_text=True)
        if json.loads(text) != vector["packed_without_time"] or list(json.loads(text)) != list(
            vector["packed_without_time"]
        ):
            mismatches.append(number)
    assert mismatches == []
    assert cases > 20


@given(st.text(), st.integers(0, 4_102_444_800_000), st.integers(0, 900), st.integers(0, 900))
def test_the_time_stands_where_the_seed_puts_it(summary: str, time_ms: int, before: int, after: int) -> None:
    """`type`, `message`, `time`, `compaction_stats`, in this order; the time is UTC with milliseconds and Z."""
    stats = CompactionStats(trigger="manual", messages_count_before=before, messages_count_after=after)
    alert = json.loads(alert_text(summary, "sliding_window", time_ms=time_ms, stats=stats, stats_in_text=True))
    assert list(alert) == ["type", "message", "time", "compaction_stats"]
    assert alert["time"] == iso_time(time_ms)
    assert len(alert["time"]) == len("2026-08-01T00:00:00.000Z")
    assert alert["message"].startswith(f"Note: {before - after} messages from the beginning of the conversation ")
    assert alert["message"].endswith(f"\nThe following is a summary of the previous messages:\n {summary}")


@given(st.text())
def test_the_raw_summary_comes_out_of_its_envelope(summary: str) -> None:
    """A summary is distilled again as it was written, never in its JSON: from the metadata, else out of the alert's text."""
    alert = alert_text(summary, "all", time_ms=1)
    told = Message(id="s", role="user", kind="summary", parts=(Text(text=alert),))
    assert raw_summary(told) == summary
    plain = Message(id="m", role="user", parts=(Text(text=alert),))
    assert raw_summary(plain) is None
    carried = Message(id="s", role="user", metadata={"compaction": compaction_metadata(summary)})
    assert raw_summary(carried) == summary
