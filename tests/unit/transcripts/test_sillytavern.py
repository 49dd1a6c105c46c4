"""SillyTavern chats: hidden is not a role, swipes are branches, ids do not move when a chat grows."""

import json
from typing import Any

import pytest

from tests.unit.transcripts.samples import read, sample, told
from turnfold.transcripts import decode_one
from turnfold.transcripts.document import SummaryBoundary
from turnfold.transcripts.sillytavern import send_date_ms


def chat(*rows: dict[str, Any]) -> bytes:
    """A chat of these messages."""
    head = {"user_name": "u", "character_name": "c", "chat_metadata": {}}
    return "\n".join(json.dumps(row) for row in (head, *rows)).encode()


def test_is_system_means_hidden_and_not_a_role() -> None:
    """A hidden message keeps its speaker's role and is marked; a narrator's line is the system's."""
    transcript = read("sillytavern_chat.jsonl")
    hidden = [message for message in transcript.messages if message.metadata.get("hidden")]
    assert [(message.role, message.text) for message in hidden] == [("user", "(hidden note)")]
    assert [message.text for message in transcript.messages if message.role == "system"] == ["Night falls."]


def test_other_swipes_are_branches_at_their_place() -> None:
    """Each version that was not chosen leaves the path right before its message, with its own date, model and thoughts."""
    transcript = read("sillytavern_chat.jsonl")
    assert [told(branch.messages) for branch in transcript.branches] == [
        ["assistant: The tavern is closed."],
        ["assistant: 我不知道。"],
    ]
    greeting, answer = transcript.branches
    assert greeting.after is None
    assert answer.after == transcript.messages[1].id
    assert greeting.messages[0].model == "m-2"
    assert transcript.skipped == {"swipe without text": 1}


def test_a_kept_memory_is_a_summary_of_the_chat_up_to_its_message() -> None:
    """The summarizing extension's text covers everything up to the message that holds it."""
    transcript = read("sillytavern_chat.jsonl")
    summary = next(message for message in transcript.messages if message.kind == "summary")
    assert summary.text == "莉娅说铜钥匙在三号窗口。"
    covered = next(message for message in transcript.messages if message.text == "在三号窗口。")
    assert transcript.boundaries == (SummaryBoundary(summary_id=summary.id, last_id=covered.id),)


def test_a_chat_that_grew_keeps_the_ids_of_its_old_messages() -> None:
    """Importing a chat again after more was said adds only what is new."""
    whole = read("sillytavern_chat.jsonl")
    before = decode_one(b"\n".join(sample("sillytavern_chat.jsonl").splitlines()[:-2]))
    ids = [message.id for message in before.messages]
    assert ids == [message.id for message in whole.messages][: len(ids)]
    assert before.branches == whole.branches


def test_an_edited_message_counts_as_it_reads_now() -> None:
    """`mes` is what the model saw; the swipe that it was edited from stays as a branch."""
    row = {"name": "c", "is_user": False, "mes": "edited", "swipe_id": 0, "swipes": ["original"]}
    transcript = decode_one(chat(row))
    assert told(transcript.messages) == ["assistant: edited"]
    assert told(transcript.branches[0].messages) == ["assistant: original"]


@pytest.mark.parametrize(
    ("written", "ms"),
    [
        (1767193920000, 1767193920000),
        ("2026-10-05 @09h 30m 00s", 1791192600000),
        ("2026-10-05@09h30m00s", 1791192600000),
        ("2026-10-05 @09h 30m 00s 123ms", 1791192600123),
        ("December 31, 2025 3:12pm", 1767193920000),
        ("January 1, 2026 12:05am", 1767225900000),
        ("2026-10-05T09:30:00.000Z", 1791192600000),
        ("2026-10-05T11:30:00+02:00", 1791192600000),
        ("yesterday", None),
        ("2026-13-45 @99h 99m 99s", None),
        ("Smarch 1, 2026 1:00pm", None),
        (True, None),
        (1e300, None),
        (None, None),
    ],
)
def test_every_way_of_writing_a_date_is_understood(written: Any, ms: int | None) -> None:
    """Four spellings are in use; what is none of them is no date rather than a wrong one."""
    assert send_date_ms(written) == ms
