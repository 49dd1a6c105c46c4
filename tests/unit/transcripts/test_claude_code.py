"""Claude Code sessions: replies and parallel results put together, branches kept, summaries resolved or left alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SHARED
from tests.unit.transcripts.samples import read, told
from turnfold.messages.model import Reasoning
from turnfold.transcripts import decode, decode_one
from turnfold.transcripts.document import SummaryBoundary, Transcript

SAMPLES = SHARED / "samples" / "claude_code"


def row(kind: str, uuid: str, parent: str | None, content: Any, **fields: Any) -> dict[str, Any]:
    """One row of a session."""
    message = {"role": kind, "content": content, **fields.pop("message", {})}
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message, **fields}


def use(call_id: str) -> dict[str, Any]:
    """A call of a tool."""
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}}


def result(call_id: str, text: str = "ok") -> dict[str, Any]:
    """A result of a call."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": text}


def session(*rows: dict[str, Any]) -> Transcript:
    """The conversation of a session."""
    return decode_one("\n".join(json.dumps(each) for each in rows).encode(), format_name="claude_code")


def test_a_reply_over_several_rows_is_one_message() -> None:
    """Rows with one `message.id` are one reply with all its parts, and the last row says how it ended."""
    reply = read("claude_code_session.jsonl").messages[1]
    assert reply.id == "a1"
    assert isinstance(reply.parts[0], Reasoning)
    assert reply.text == "Writing."
    assert [call.id for call in reply.calls] == ["t1", "t2"]
    assert reply.stop_reason == "tool_use"
    assert reply.usage is not None
    assert (reply.usage.output, reply.usage.prompt) == (60, 113)


def test_results_of_parallel_calls_are_all_on_the_main_path() -> None:
    """Results hang under different rows of a reply; following parents alone would lose all but the last."""
    transcript = read("claude_code_session.jsonl")
    results = [message.results[0] for message in transcript.messages if message.role == "tool"]
    assert [(part.call_id, part.is_error) for part in results] == [("t1", False), ("t2", True)]


def test_a_repeated_call_result_is_a_branch_and_not_a_second_answer() -> None:
    """A result that answers the same call again belongs to another attempt."""
    transcript = session(
        row("user", "u", None, "go"),
        row("assistant", "a", "u", [use("t")]),
        row("user", "r1", "a", [result("t", "first")]),
        row("user", "r2", "a", [result("t", "second")]),
        row("assistant", "b", "r2", "done"),
    )
    assert told(transcript.messages) == ["user: go", "assistant: [f]", "tool: second", "assistant: done"]
    assert [told(branch.messages) for branch in transcript.branches] == [["tool: first"]]


def test_edits_and_subagents_are_branches() -> None:
    """The path to the last row is the main one; an abandoned edit and a subagent's rows stay readable beside it."""
    transcript = read("claude_code_session.jsonl")
    assert "user: Try again" not in told(transcript.messages)
    branches = {branch.after: told(branch.messages) for branch in transcript.branches}
    assert branches["a5"] == ["user: Try again", "assistant: Done now."]
    assert branches[None] == ["user: Explore the code", "assistant: Explored."]


def test_a_summary_whose_rows_are_here_says_what_it_covers() -> None:
    """Coverage ends before the rows that the compaction preserved, and these stay where they were said."""
    transcript = read("claude_code_session.jsonl")
    assert transcript.boundaries == (SummaryBoundary(summary_id="k1", last_id="a6b"),)
    kinds = {message.id: message.kind for message in transcript.messages}
    assert kinds["k1"] == "summary"
    ids = list(kinds)
    assert ids[ids.index("k1") - 2 : ids.index("k1") + 2] == ["u3", "a7", "k1", "u4"]


def test_a_summary_whose_rows_are_elsewhere_stays_a_summary_message() -> None:
    """A session that begins with another session's summary has nothing that the summary could cover."""
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "b",
        "parentUuid": None,
        "logicalParentUuid": "x",
    }
    transcript = session(
        boundary,
        row("user", "k", "b", "Summary of another file", isCompactSummary=True),
        row("user", "u", "k", "go on"),
    )
    assert transcript.boundaries == ()
    assert [(message.id, message.kind) for message in transcript.messages] == [("k", "summary"), ("u", "message")]


def test_preserved_rows_that_are_not_here_leave_the_summary_unresolved() -> None:
    """When it cannot be known where coverage ends, none is claimed."""
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "b",
        "parentUuid": None,
        "logicalParentUuid": "a",
        "compactMetadata": {"preservedSegment": {"headUuid": "gone", "tailUuid": "gone too"}},
    }
    transcript = session(
        row("user", "u", None, "go"),
        row("assistant", "a", "u", "done"),
        boundary,
        row("user", "k", "b", "Summary", isCompactSummary=True),
    )
    assert transcript.boundaries == ()
    assert told(transcript.messages) == ["user: go", "assistant: done", "user: Summary"]


def test_a_parent_that_was_never_written_does_not_cut_the_conversation() -> None:
    """A gap in the chain is bridged by the row before, so that everything before it stays on the main path."""
    assert told(read("claude_code_session.jsonl").messages)[-1] == "user: One more"
    assert len(read("claude_code_session.jsonl").messages) == 13


def test_repeated_and_unknown_rows_are_counted() -> None:
    """Nothing is dropped in silence: a copied row is counted, snapshots and system rows are kept as they are."""
    transcript = read("claude_code_session.jsonl")
    assert transcript.skipped == {"the same row again": 1}
    assert transcript.opaque_counts == {"file-history-snapshot": 1, "system": 1}
    assert transcript.title == "Two files written in parallel"
    assert transcript.conversation_id == "s-1"


@pytest.fixture
def real() -> Path:
    """Real sessions; skips where the checkout has none beside it."""
    if not SAMPLES.is_dir():
        pytest.skip("no shared samples beside this checkout (../shared/samples)")
    return SAMPLES


@pytest.mark.parametrize(
    ("name", "messages"),
    [("representative_messages", 11), ("session_b", 3), ("todowrite_examples", 11)],
)
def test_real_sessions_are_read_whole(real: Path, name: str, messages: int) -> None:
    """Every message of a real session is on its main path, in the order of the file."""
    data = (real / f"{name}.jsonl").read_bytes()
    (transcript,) = decode(data, strict=True)
    assert len(transcript.messages) == messages
    uuids = [each.get("uuid") for each in map(json.loads, data.splitlines())]
    assert [message.id for message in transcript.messages] == [uuid for uuid in uuids if uuid]


def test_a_real_session_with_broken_rows_gives_the_rest(real: Path) -> None:
    """Rows that are no messages are kept or reported with their line, and the others are read."""
    (transcript,) = decode((real / "edge_cases.jsonl").read_bytes())
    assert len(transcript.messages) == 11
    assert [problem.place for problem in transcript.problems] == ["line 10", "line 11", "line 18"]
    assert transcript.opaque_counts == {"unknown": 4}
