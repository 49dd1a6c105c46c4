"""letta-code local and pi sessions: the tree, the rows that win, the compactions, and everything written back."""

import json
from typing import Any

from tests.unit.transcripts.samples import read, told
from turnfold.messages.model import ToolCall
from turnfold.transcripts import decode_one, encode
from turnfold.transcripts.document import SummaryBoundary


def lines(*rows: dict[str, Any]) -> bytes:
    """Rows as JSON Lines."""
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()


def entry(name: str, parent: str | None, message: dict[str, Any]) -> dict[str, Any]:
    """A message row."""
    return {"type": "message", "id": name, "parentId": parent, "timestamp": "2026-01-01T00:00:00Z", "message": message}


def test_a_session_is_a_tree_and_its_last_row_ends_the_main_path() -> None:
    """Rows that are no messages carry the tree on; what left the main path is a branch."""
    transcript = read("letta_session.jsonl")
    assert transcript.conversation_id == "conv-1"
    assert [message.id for message in transcript.messages] == ["a1", "a3", "a4", "a5", "a6", "a7", "a8"]
    assert [(branch.after, told(branch.messages)) for branch in transcript.branches] == [("a6", ["user: Another way"])]
    assert transcript.opaque_counts == {"model_change": 1, "label": 1}


def test_a_compaction_covers_what_stands_before_the_first_kept_row() -> None:
    """The summary is a row of kind `summary` with the raw summary; it covers the messages before what was kept."""
    transcript = read("letta_session.jsonl")
    assert transcript.boundaries == (SummaryBoundary(summary_id="a7", last_id="a5"),)
    summary = transcript.messages[5]
    assert summary.kind == "summary"
    assert summary.metadata["compaction"]["summary"] == "Login test fails."


def test_a_compaction_that_kept_nothing_covers_everything_before_it() -> None:
    """Without a first kept row all is covered; a first kept row that is not there leaves it unresolved."""
    head = {"type": "session", "version": 3, "id": "c"}
    said = entry("m1", None, {"role": "user", "content": "hello"})
    compaction = {"type": "compaction", "id": "k", "parentId": "m1", "summary": "S", "firstKeptEntryId": None}
    covered = decode_one(lines(head, said, compaction))
    assert covered.boundaries == (SummaryBoundary(summary_id="k", last_id="m1"),)
    unresolved = decode_one(lines(head, said, {**compaction, "firstKeptEntryId": "elsewhere"}))
    assert unresolved.boundaries == ()
    assert unresolved.messages[1].kind == "summary"


def test_the_last_row_of_an_id_wins() -> None:
    """A row written again replaces the first one where that stood."""
    head = {"type": "session", "version": 3, "id": "c"}
    first, other = {"role": "user", "content": "old"}, {"role": "user", "content": "second"}
    rows = [entry("m1", None, first), entry("m2", "m1", other), entry("m1", None, {**first, "content": "new"})]
    transcript = decode_one(lines(head, *rows))
    assert told(transcript.messages)[:1] == ["user: new"]
    assert sum(transcript.skipped.values()) == 1


def test_a_bare_summary_message_is_of_kind_summary() -> None:
    """`metadata.compaction` marks a summary in the in-context form, where nothing that it covers is left."""
    message = {
        "id": "m",
        "role": "user",
        "content": "...",
        "timestamp": 1,
        "metadata": {"compaction": {"summary": "S"}},
    }
    transcript = decode_one(lines(message, {"id": "n", "role": "user", "content": "go", "timestamp": 2}))
    assert [m.kind for m in transcript.messages] == ["summary", "message"]
    assert transcript.boundaries == ()


def test_arguments_are_written_as_javascript_would() -> None:
    """Keys that are array indexes come first and numbers have double precision, as in the program that wrote them."""
    arguments = '{"b":1,"10":2,"2":3,"big":12345678901234567890,"one":1.0}'
    row = (
        f'{{"id":"m","role":"assistant","content":[{{"type":"toolCall","id":"c","name":"f","arguments":{arguments}}}]}}'
    )
    transcript = decode_one(row.encode())
    call = transcript.messages[0].parts[0]
    assert isinstance(call, ToolCall)
    assert call.arguments == '{"2":3,"10":2,"b":1,"big":12345678901234567000,"one":1}'


def test_signatures_and_costs_come_back() -> None:
    """What has no place in a message is kept and written again, byte for byte."""
    for name in ("letta_session.jsonl", "pi_session.jsonl"):
        transcript = read(name)
        assert transcript.messages[1].metadata["letta"]
        written = b"".join(encode(transcript, "letta"))
        assert decode_one(written) == transcript
