"""The letta-code local format against messages that letta-code itself has planned and rendered."""

import json
from pathlib import Path

import pytest

from turnfold.messages.canonical import js_json
from turnfold.transcripts import decode_one, encode


@pytest.mark.parametrize("name", ["planning.jsonl", "transcripts.jsonl"])
def test_every_message_is_written_back_byte_for_byte(vectors: Path, name: str) -> None:
    """Bare messages, one a line or in one document, come back as they were: text, calls, images, usage and summaries."""
    count = 0
    for line in (vectors / name).read_text("utf-8").strip().split("\n"):
        messages = json.loads(line)["messages"]
        document = js_json({"messages": messages}).encode() + b"\n"
        rows = b"".join(js_json(message).encode() + b"\n" for message in messages)
        for data in (document, rows):
            transcript = decode_one(data, strict=True)
            assert transcript.format == "letta" or not data.count(b'"toolCall"')
            transcript = decode_one(data, format_name="letta", strict=True)
            assert b"".join(encode(transcript, "letta")) == data
        count += 1
    assert count > 50


@pytest.mark.parametrize("name", ["planning.jsonl", "transcripts.jsonl"])
def test_kinds_and_roles_are_told_apart(vectors: Path, name: str) -> None:
    """A summary is of kind `summary`, a tool's result a `tool` message of one result, and ids are kept."""
    for line in (vectors / name).read_text("utf-8").strip().split("\n"):
        rows = json.loads(line)["messages"]
        messages = decode_one(js_json({"messages": rows}).encode(), format_name="letta").messages
        assert [message.id for message in messages] == [row["id"] for row in rows]
        for message, row in zip(messages, rows, strict=True):
            assert message.role == {"toolResult": "tool"}.get(row["role"], row["role"])
            assert (message.kind == "summary") == ("compaction" in row.get("metadata", {}))
            assert len(message.results) == (row["role"] == "toolResult")
            assert message.usage is None or message.usage.total == row["usage"]["totalTokens"]
