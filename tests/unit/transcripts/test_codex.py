"""Codex rollouts: response items are the conversation, events are not a second one, rollbacks are branches."""

import json
from typing import Any

from tests.unit.transcripts.samples import read, told
from turnfold.messages.model import Reasoning
from turnfold.transcripts import decode_one
from turnfold.transcripts.document import SummaryBoundary


def rollout(*rows: tuple[str, dict[str, Any]]) -> bytes:
    """Rows of a rollout."""
    return "\n".join(
        json.dumps({"timestamp": "2026-01-01T00:00:00Z", "type": t, "payload": p}) for t, p in rows
    ).encode()


def said(role: str, text: str) -> tuple[str, dict[str, Any]]:
    """A message row."""
    kind = "output_text" if role == "assistant" else "input_text"
    return "response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


ROLLBACK = ("event_msg", {"type": "thread_rolled_back", "num_turns": 1})


def test_events_that_repeat_response_items_are_not_messages() -> None:
    """What was said once is one message; the event rows are counted."""
    transcript = read("codex_rollout.jsonl")
    assert told(transcript.messages).count("user: 列出文件") == 1
    assert told(transcript.messages).count("assistant: One file: a.md") == 1
    assert transcript.skipped["event that repeats a response item"] == 2
    assert transcript.opaque_counts == {"ghost_snapshot": 1}


def test_reasoning_calls_and_usage_are_one_reply() -> None:
    """Encrypted reasoning stands in the reply of the call that it led to, with the tokens that the event reported."""
    reply = read("codex_rollout.jsonl").messages[2]
    assert isinstance(reply.parts[0], Reasoning)
    assert "gAAA" in (reply.parts[0].payload or "")
    assert [call.name for call in reply.calls] == ["shell"]
    assert reply.model == "gpt-x"
    assert reply.usage is not None
    assert (reply.usage.input, reply.usage.cache_read, reply.usage.output) == (40, 60, 9)


def test_a_rollback_leaves_what_it_took_back_on_a_branch() -> None:
    """Turns that were rolled back are not on the main path and not lost."""
    transcript = read("codex_rollout.jsonl")
    assert "user: Wrong question" not in told(transcript.messages)
    assert told(transcript.branches[0].messages) == ["user: Wrong question", "assistant: Wrong answer"]
    after = next(message.id for message in transcript.messages if message.text == "One file: a.md")
    assert transcript.branches[0].after == after


def test_a_rollback_as_the_last_row_ends_the_main_path_before_it() -> None:
    """The main path ends where the session stands, even when nothing was said since."""
    data = rollout(said("user", "a"), said("assistant", "b"), said("user", "c"), said("assistant", "d"), ROLLBACK)
    transcript = decode_one(data)
    assert told(transcript.messages) == ["user: a", "assistant: b"]
    assert told(transcript.branches[0].messages) == ["user: c", "assistant: d"]


def test_a_compaction_covers_everything_before_it() -> None:
    """The summary's messages are in the same file, so it is resolved."""
    transcript = read("codex_rollout.jsonl")
    summary = next(message for message in transcript.messages if message.kind == "summary")
    last = next(message for message in transcript.messages if message.text == "Right answer")
    assert transcript.boundaries == (SummaryBoundary(summary_id=summary.id, last_id=last.id),)


def test_a_log_of_events_alone_is_still_a_conversation() -> None:
    """Where no response items were written, the events are what is left of the conversation."""
    events = [("event_msg", {"type": f"{who}_message", "message": who}) for who in ("user", "agent")]
    assert told(decode_one(rollout(*events)).messages) == ["user: user", "assistant: agent"]


def test_old_rollouts_without_payloads_are_read() -> None:
    """Rows that are bare items, as older releases wrote them, are the same conversation."""
    rows = [{"id": "old", "timestamp": "2025-05-01T00:00:00Z", "instructions": None}, said("user", "hi")[1]]
    data = "\n".join(json.dumps(row) for row in rows).encode()
    transcript = decode_one(data, format_name="codex")
    assert (transcript.conversation_id, told(transcript.messages)) == ("old", ["user: hi"])
