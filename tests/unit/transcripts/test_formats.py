"""Every format: told by its content alone, read the same each time, and what is not a conversation is refused with a cure."""

import json

import pytest

from tests.unit.transcripts.samples import FORMATS, sample
from turnfold.errors import TranscriptError
from turnfold.transcripts import CODECS, decode, decode_one, detect_format, encode, iter_decode
from turnfold.transcripts.document import Entry, Problem


@pytest.mark.parametrize(("name", "format_name"), FORMATS.items())
def test_a_format_is_told_by_its_content(name: str, format_name: str) -> None:
    """Detection needs no file name, and the first bytes of a large file are enough."""
    data = sample(name)
    assert detect_format(data) == format_name
    assert detect_format(data[: len(data) * 2 // 3]) == format_name
    assert {transcript.format for transcript in decode(data)} == {format_name}


@pytest.mark.parametrize("name", FORMATS)
def test_reading_twice_gives_the_same_ids(name: str) -> None:
    """Importing a file again finds every message already there, branches and summaries included."""
    first, second = decode(sample(name)), decode([sample(name)[:100], sample(name)[100:]])
    assert first == second
    for transcript in first:
        messages = [*transcript.messages, *(m for branch in transcript.branches for m in branch.messages)]
        assert len({message.id for message in messages}) == len(messages)
        assert all(message.id for message in messages)


@pytest.mark.parametrize("name", FORMATS)
def test_a_pretty_printed_or_indented_document_is_the_same_document(name: str) -> None:
    """White space does not matter, nor does a byte order mark."""
    if not name.endswith(".json"):
        data = b"\xef\xbb\xbf" + sample(name).replace(b"\n", b"\r\n\r\n")
    else:
        data = json.dumps(json.loads(sample(name)), indent=2, ensure_ascii=True).encode()
    before, after = decode(sample(name)), decode(data)
    assert [t.messages for t in after] == [t.messages for t in before]


@pytest.mark.parametrize("name", FORMATS)
def test_every_conversation_leaves_by_every_door(name: str) -> None:
    """Each sample can be written in each format that is written, and read back where that format is read."""
    for transcript in decode(sample(name)):
        for target, codec in CODECS.items():
            if codec.encode is None:
                continue
            written = b"".join(encode(transcript, target))
            assert written
            if codec.events is not None:
                again = decode_one(written, format_name=target)
                assert {m.role for m in again.messages} <= {"system", "user", "assistant", "tool"}
                assert again.messages


@pytest.mark.parametrize("name", [name for name, kind in FORMATS.items() if CODECS[kind].encode])
def test_what_was_read_is_written_back(name: str) -> None:
    """Decode then encode gives the same JSON values, whatever else the file holds."""
    transcripts = decode(sample(name))
    written = b"".join(piece for transcript in transcripts for piece in encode(transcript, FORMATS[name]))
    assert [json.loads(line) for line in written.splitlines()] == [
        json.loads(line) for line in sample(name).splitlines()
    ]


@pytest.mark.parametrize(
    ("data", "place", "reason"),
    [
        (b"", "file", "empty"),
        (b" \n\n", "file", "empty"),
        (b"hello, world\n", "file", "not JSON"),
        (b'{"a": 1}\n', "file", "not a conversation"),
        (b"[]", "file", "not a conversation"),
        (b'{"messages": []}', "file", "no messages"),
        (b'{"role": "user", "cont', "line 1", "breaks off"),
        (b'{"role": "robot", "content": "x"}', "line 1", "role 'robot' is unknown"),
        ('{"role": "user"}'.encode("utf-16"), "file", "UTF-16"),
        (b"PK\x03\x04rest", "file", "zip"),
        (b"\x1f\x8brest", "file", "compressed"),
        (b"SQLite format 3\x00rest", "file", "database"),
        (b'{"role": "user", "content": 7}', "line 1", "content"),
    ],
)
def test_what_is_not_a_conversation_is_refused_with_place_reason_and_cure(data: bytes, place: str, reason: str) -> None:
    """One typed error says where, what and what to do."""
    with pytest.raises(TranscriptError) as caught:
        decode(data)
    assert caught.value.place == place
    assert reason in caught.value.reason
    assert caught.value.cure


GOOD, BAD = b'{"role":"user","content":"x"}\n', b'{"role":"user","con\n'


def test_a_broken_line_is_reported_with_its_number_and_the_rest_is_read() -> None:
    """Importing takes what is whole; strict reading stops at the first broken place."""
    (transcript,) = decode(GOOD + BAD + b'{"role":"robot","content":"y"}\n' + GOOD)
    assert [message.text for message in transcript.messages] == ["x", "x"]
    assert [problem.place for problem in transcript.problems] == ["line 2", "line 3"]
    assert transcript.problem_count == 2
    with pytest.raises(TranscriptError, match="line 2"):
        decode(GOOD + BAD + GOOD, strict=True)


def test_a_truncated_last_line_is_told_from_a_wrong_one() -> None:
    """Someone whose disk was full reads that the line breaks off, not a parser's words."""
    (transcript,) = decode(GOOD + GOOD[:-5])
    assert "breaks off" in transcript.problems[0].reason
    (transcript,) = decode(GOOD + b'{"role" "user"}\n')
    assert "not JSON" in transcript.problems[0].reason
    (transcript,) = decode(GOOD + b'{"role":"user","content":"\xff"}\n')
    assert "not UTF-8" in transcript.problems[0].reason


def test_lone_surrogates_are_replaced_and_said() -> None:
    """Text that no UTF-8 can hold is repaired at the edge, as a note and not as an error."""
    (transcript,) = decode(b'{"role":"user","content":"a\\ud83d b \\ud83d\\udddd"}\n', strict=True)
    assert transcript.messages[0].text == "a\ufffd b \U0001f5dd"
    assert transcript.problems[0].level == "note"
    assert transcript.problem_count == 0


def test_two_messages_under_one_id_are_both_kept() -> None:
    """A duplicate id is an error when strict; otherwise the second gets a derived id, the same each time."""
    data = b'{"id":"a","role":"user","content":"x"}\n{"id":"a","role":"user","content":"y"}\n'
    with pytest.raises(TranscriptError, match="another message has the id 'a'"):
        decode(data, strict=True)
    (transcript,) = decode(data)
    assert [(m.id, m.text) for m in transcript.messages] == [("a", "x"), ("a~2", "y")]
    assert transcript.problem_count == 1


def test_deep_nesting_is_a_broken_line_and_not_a_crash() -> None:
    """A line nested a hundred thousand levels deep is refused in bounded time."""
    deep = b'{"role":"user","content":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    medium = b'{"role":"user","content":"x","extra":' + b"[" * 300 + b"]" * 300 + b"}\n"
    (transcript,) = decode(GOOD + deep + medium)
    assert len(transcript.messages) == 1
    assert all("nested" in problem.reason for problem in transcript.problems)
    assert transcript.problem_count == 2


def test_numbers_that_json_cannot_carry_do_not_get_in() -> None:
    """NaN is refused, huge integers become floats as in JavaScript, so that every store can keep what was read."""
    (transcript,) = decode(
        GOOD + b'{"role":"user","content":"y","n":NaN}\n{"role":"user","content":"z","n":' + b"9" * 400 + b"}\n"
    )
    assert [message.text for message in transcript.messages] == ["x", "z"]
    assert transcript.messages[1].metadata["openai_chat"]["fields"] == {"n": None}
    list(encode(transcript, "turnfold"))


def test_an_unknown_format_names_the_known_ones() -> None:
    """A wrong format name is answered with the right ones; a format that is only read cannot be written."""
    with pytest.raises(TranscriptError, match="openai_chat"):
        decode(GOOD, format_name="opneai")
    (transcript,) = decode(GOOD)
    with pytest.raises(TranscriptError, match="cannot write 'codex'"):
        encode(transcript, "codex")


def test_one_conversation_is_asked_for_and_several_are_refused() -> None:
    """`decode_one` never picks one of several in silence."""
    with pytest.raises(TranscriptError, match="2 conversations"):
        decode_one(sample("openai_finetune.jsonl"))


def test_large_files_are_read_one_event_at_a_time() -> None:
    """The first message is out before the last line is asked for: memory does not grow with the file."""
    asked = 0

    def lines() -> object:
        nonlocal asked
        for _ in range(10_000):
            asked += 1
            yield b'{"role":"user","content":"' + b"x" * 1000 + b'"}\n'

    events = iter_decode(lines())  # type: ignore[arg-type]
    first = next(event for event in events if isinstance(event, Entry))
    assert first.message.text.startswith("x")
    assert asked < 2000
    assert not any(isinstance(event, Problem) for event in events)


def test_a_transcript_is_told_in_the_places_that_broke_it() -> None:
    """Places of messages inside a document say which message it is."""
    (transcript,) = decode(b'{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":{}}]}')
    assert transcript.problems[0].place == "line 1, message 2"
