"""What importing a file does to a store: once, then nothing; longer, then the rest; edited, then a branch; never a loss."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.transcripts.samples import FORMATS, sample
from turnfold.core.checkpoint import CheckpointKey, extend_coverage
from turnfold.core.policy import Policy
from turnfold.errors import TranscriptError
from turnfold.messages.log import MAIN, ConversationKey
from turnfold.messages.model import Message
from turnfold.session.copying import copy_conversation
from turnfold.session.importing import Imported, import_events
from turnfold.stores.memory import MemoryStore
from turnfold.transcripts import decode, iter_decode
from turnfold.transcripts.document import MAX_PROBLEMS, Problem, Transcript


class StoppedClock:
    """A clock that stands."""

    def now_ms(self) -> int:
        return 1_790_000_000_000

    def monotonic_ms(self) -> float:
        return 0.0


def bring_in(store: MemoryStore, data: bytes | Iterable[bytes], **options: Any) -> list[Imported]:
    """Import a file's bytes into a store."""
    given: dict[str, Any] = {"tenant": "", "user": "u", "file_name": "talk", **options}
    return asyncio.run(import_events(store, iter_decode(data), policy=Policy(), clock=StoppedClock(), **given))


def paths(store: MemoryStore, name: str) -> dict[str, list[Message]]:
    """Every branch's whole path."""
    key = ConversationKey(user="u", conversation_id=name)

    async def read() -> dict[str, list[Message]]:
        branches = await store.branches(key)
        return {b.name: [e.message for e in await store.read(key, branch=b.name)] for b in branches}

    return asyncio.run(read())


def texts(messages: Iterable[Message]) -> list[str]:
    """What messages say."""
    return [message.text for message in messages]


def problems_of(store: MemoryStore) -> tuple[str, ...]:
    """What verification finds."""
    return asyncio.run(store.verify()).problems


def rows(*messages: tuple[str, str]) -> bytes:
    """OpenAI messages, one a line: texts, with ids of their own where the first of a pair is not empty."""
    roles = ("user", "assistant")
    values = [
        {**({"id": name} if name else {}), "role": roles[n % 2], "content": text}
        for n, (name, text) in enumerate(messages)
    ]
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def unnamed(texts: str) -> bytes:
    """Messages without ids, one for each letter."""
    return rows(*(("", text) for text in texts))


def named(texts: str) -> bytes:
    """Messages with ids of their own: a letter's id is the letter in lower case."""
    return rows(*((text.lower(), text) for text in texts))


@pytest.mark.parametrize("name", FORMATS)
def test_importing_twice_adds_nothing(name: str) -> None:
    """Every format: the second import finds every message, branch and summary there, and says so."""
    store = MemoryStore()
    first = bring_in(store, sample(name))
    before = {report.conversation_id: paths(store, report.conversation_id) for report in first}
    again = bring_in(store, sample(name))
    assert sum(report.added for report in first) == sum(report.known for report in first + again) > 0
    assert [(r.added, r.changed, r.branches, r.checkpoints) for r in again] == [(0, 0, 0, 0)] * len(first)
    assert {report.conversation_id: paths(store, report.conversation_id) for report in again} == before
    assert problems_of(store) == ()


@pytest.mark.parametrize("name", FORMATS)
def test_a_store_holds_what_the_file_holds(name: str) -> None:
    """Every path of the file is a path of the log, message for message; what gave no message is counted."""
    store = MemoryStore()
    reports = bring_in(store, sample(name))
    for report, transcript in zip(reports, decode(sample(name)), strict=True):
        stored = paths(store, report.conversation_id)
        assert stored[report.branch] == list(transcript.messages)
        assert sorted(stored) == sorted([MAIN, *(branch.name for branch in transcript.branches)])
        for branch in transcript.branches:
            assert stored[branch.name][-len(branch.messages) :] == list(branch.messages)
        assert (report.opaque, report.problem_count) == (len(transcript.opaque), 0)
        assert report.skipped == sum(transcript.skipped.values())


@pytest.mark.parametrize("name", [name for name in FORMATS if name.endswith(".jsonl") and "finetune" not in name])
def test_a_file_that_grows_adds_its_new_messages(name: str) -> None:
    """Cut after any line and imported, then whole: the log's path is the file's, and no message that was whole is doubled."""
    lines = sample(name).splitlines(keepends=True)
    for cut in range(2, len(lines)):
        store = MemoryStore()
        part = decode_or_none(b"".join(lines[:cut]))
        if part is None:
            continue
        bring_in(store, b"".join(lines[:cut]))
        (report,) = bring_in(store, sample(name))
        (whole,) = decode(sample(name))
        stored = paths(store, report.conversation_id)
        assert texts(stored[report.branch]) == texts(whole.messages), (name, cut)
        again = bring_in(store, sample(name))
        assert [(r.added, r.branches, r.checkpoints) for r in again] == [(0, 0, 0)], (name, cut)
        assert problems_of(store) == ()


def decode_or_none(data: bytes) -> Transcript | None:
    """The only conversation of a file, None where there is no message yet."""
    try:
        return decode(data)[0]
    except TranscriptError:
        return None


@pytest.mark.parametrize("make", [unnamed, named])
@given(old=st.text("ABCD", min_size=1, max_size=5), new=st.text("ABCD", min_size=1, max_size=6))
def test_an_edited_file_becomes_a_branch(make: Any, old: str, new: str) -> None:
    """Whatever was imported before stays as it was; the path on which the new file ends says what the new file says.

    Letters stand for messages. With ids of their own a letter said again is the same message again, and letters that the new
    file left out, or moved, stay where the log has them.
    """
    if make is named:
        new = old[: len(new) // 2] + "E" + "".join(dict.fromkeys(new))  # an insertion, and what follows it
        old = "".join(dict.fromkeys(old))
        new = "".join(dict.fromkeys(new))
    store = MemoryStore()
    bring_in(store, make(old))
    before = paths(store, "talk")[MAIN]
    reports = bring_in(store, make(new), conversation_id="talk")
    after = paths(store, "talk")
    assert after[MAIN][: len(before)] == before
    path = "".join(texts(after[reports[0].branch]))
    if make is unnamed:
        assert path == new or (path.startswith(new) and old.startswith(new))
    else:
        assert set(new) <= set(path)
        assert is_subsequence(new[new.index("E") :], path)
    sizes = {name: len(messages) for name, messages in after.items()}
    again = bring_in(store, make(new), conversation_id="talk")
    assert (again[0].added, again[0].branches) == (0, 0)
    assert {name: len(messages) for name, messages in paths(store, "talk").items()} == sizes
    assert problems_of(store) == ()


def is_subsequence(part: str, whole: str) -> bool:
    """Whether the letters of `part` stand in `whole` in their order."""
    letters = iter(whole)
    return all(letter in letters for letter in part)


def test_an_edit_in_the_middle_leaves_the_log_where_the_file_does() -> None:
    """The shared beginning is not copied; old and new continuation are both readable."""
    store = MemoryStore()
    bring_in(store, named("ABCDE"))
    edited = rows(("a", "A"), ("b", "B"), ("c", "C, edited"), ("d", "D"), ("e", "E"))
    (report,) = bring_in(store, edited)
    stored = paths(store, "talk")
    assert texts(stored[MAIN]) == list("ABCDE")
    assert texts(stored[report.branch]) == ["A", "B", "C, edited", "D", "E"]
    assert (report.known, report.added, report.changed, report.branches) == (2, 3, 3, 1)


def test_a_conversation_that_went_on_here_keeps_what_was_said_here() -> None:
    """Messages said in turnfold after an import are not mixed with those that the file got meanwhile."""
    store = MemoryStore()
    bring_in(store, unnamed("AB"))
    key = ConversationKey(user="u", conversation_id="talk")
    asyncio.run(store.append(key, [Message(id="here", role="user")]))
    (report,) = bring_in(store, unnamed("ABCD"))
    stored = paths(store, "talk")
    assert [message.id for message in stored[MAIN]][-1] == "here"
    assert texts(stored[report.branch]) == list("ABCD")


def test_two_files_of_one_name_are_two_conversations() -> None:
    """A name that was taken from the file is no reason to mix what two files say."""
    store = MemoryStore()
    bring_in(store, unnamed("AB"))
    (report,) = bring_in(store, unnamed("XY"))
    assert report.conversation_id.startswith("talk-")
    assert texts(paths(store, "talk")[MAIN]) == ["A", "B"]
    assert texts(paths(store, report.conversation_id)[MAIN]) == ["X", "Y"]
    assert bring_in(store, unnamed("XY"))[0].added == 0


def test_several_conversations_of_one_file_are_numbered() -> None:
    """Fine-tuning data: each line is a conversation of its own, also where all begin with the same system prompt."""
    store = MemoryStore()
    line = b'{"messages":[{"role":"system","content":"S"},{"role":"user","content":"%d"}]}\n'
    reports = bring_in(store, b"".join(line % number for number in range(3)))
    assert [report.conversation_id for report in reports] == ["talk", "talk-2", "talk-3"]
    assert [texts(paths(store, report.conversation_id)[MAIN])[1] for report in reports] == ["0", "1", "2"]
    named = bring_in(store, line % 7 + line % 8, conversation_id="mine")
    assert [report.conversation_id for report in named] == ["mine", "mine-2"]


@pytest.mark.parametrize("name", [name for name in FORMATS if name.endswith(".jsonl")])
def test_a_broken_line_is_reported_and_the_rest_imported(name: str) -> None:
    """Also in formats that tell of their conversation only after their rows: no problem is lost on the way."""
    lines = sample(name).splitlines(keepends=True)
    broken = [*lines[:1], b'{"type":"user","mess\n', *lines[1:]]
    reports = bring_in(MemoryStore(), b"".join(broken))
    assert sum(report.problem_count for report in reports) == 1
    assert [problem.place for report in reports for problem in report.problems] == ["line 2"]
    assert sum(r.added for r in reports) == sum(r.added for r in bring_in(MemoryStore(), sample(name)))


def test_a_file_without_messages_is_refused() -> None:
    """Nothing is imported in silence: the first problem, or that there is no message, is the error."""
    with pytest.raises(TranscriptError, match="no messages"):
        bring_in(MemoryStore(), b'{"type":"conversation","format":"turnfold","version":1}\n')
    with pytest.raises(TranscriptError, match="line 1"):
        bring_in(MemoryStore(), b'{"type":"user","sessionId":"s","message":"x"}\n')


NATIVE = (
    '{{"type":"message","message":{{"id":"{id}","role":"user","parts":[{{"type":"text","text":"{text}"}}]}}{more}}}\n'
)


def native(*messages: tuple[str, str, str]) -> bytes:
    """Native rows: id, text, branch."""
    return "".join(
        NATIVE.format(id=name, text=text, more=f',"branch":"{branch}"' if branch else "")
        for name, text, branch in messages
    ).encode()


def test_one_id_for_different_messages_loses_neither() -> None:
    """In one batch, across batches and again: each is kept, the later ones under derived ids."""
    store = MemoryStore()
    data = native(("a", "one", ""), ("a", "two", ""), ("b", "three", ""), ("a", "two", ""), ("b", "three", ""))
    (report,) = bring_in(store, data)
    assert [(m.id, m.text) for m in paths(store, "talk")[MAIN]] == [
        ("a", "one"),
        ("a~2", "two"),
        ("b", "three"),
        ("a~3", "two"),
    ]
    assert (report.added, report.known, report.changed) == (4, 1, 2)
    assert bring_in(store, data)[0].added == 0


def test_rows_of_branches_that_nobody_began_are_kept_and_reported() -> None:
    """A hostile or damaged native file: unknown branches, unknown messages to leave at, the same branch twice."""
    store = MemoryStore()
    data = native(("a", "A", ""), ("b", "B", "ghost"), ("c", "C", "ghost"))
    data += b'{"type":"branch","name":"late","parent":"nowhere","after":"missing"}\n' + native(("d", "D", "late"))
    data += b'{"type":"branch","name":"late","after":"a"}\n' + native(("e", "E", "late"))
    (report,) = bring_in(store, data)
    stored = paths(store, "talk")
    assert sorted(texts(message for path in stored.values() for message in path)) == ["A", "B", "C", "D", "E"]
    assert report.problem_count >= 2
    (transcript,) = decode(data)
    assert transcript.message_count == 5


def test_a_switched_current_branch_is_no_new_branch() -> None:
    """Another export of the same tree with another current path: every message is there already, and new ones go on there."""

    def tree(current: str, *more: str) -> bytes:
        nodes: dict[str, str | None] = {"n1": None, "n2": "n1", "n3": "n2", "x3": "n2", **dict.fromkeys(more, "x3")}
        mapping: dict[str, Any] = {
            name: {
                "id": name,
                "parent": parent,
                "children": [],
                "message": {
                    "id": name,
                    "author": {"role": "user" if name[1] in "135" else "assistant"},
                    "content": {"content_type": "text", "parts": [name]},
                },
            }
            for name, parent in nodes.items()
        }
        return json.dumps([{"id": "c", "mapping": mapping, "current_node": current}]).encode()

    store = MemoryStore()
    bring_in(store, tree("n3"))
    (moved,) = bring_in(store, tree("x3"))
    assert (moved.added, moved.branches) == (0, 0)
    (grown,) = bring_in(store, tree("x4", "x4"))
    assert (grown.added, grown.branches, grown.branch) == (1, 0, moved.branch)
    assert texts(paths(store, "c")[grown.branch]) == ["n1", "n2", "x3", "x4"]


def test_a_foreign_summary_covers_exactly_the_messages_before_it() -> None:
    """The checkpoint of an imported summary is the one that its covered messages give, in batches of any size."""
    for batch in (1, 3, 2000):
        store = MemoryStore()
        (report,) = bring_in(store, sample("letta_session.jsonl"), batch=batch)
        assert report.checkpoints == 1
        key = CheckpointKey(user="u", conversation_id=report.conversation_id)
        record = asyncio.run(store.load(key, 1))
        assert record.checkpoint is not None
        coverage = record.checkpoint.coverage
        assert coverage is not None
        (transcript,) = decode(sample("letta_session.jsonl"))
        ids = [message.id for message in transcript.messages]
        covered = transcript.messages[: ids.index(coverage.last_id) + 1]
        assert coverage == extend_coverage(None, covered)
        assert transcript.boundaries[0].last_id == coverage.last_id


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("batch", [1, 2])
def test_batches_of_any_size_give_the_same_log(name: str, batch: int) -> None:
    """How many messages are written together does not matter."""
    whole, pieces = MemoryStore(), MemoryStore()
    reports = bring_in(whole, sample(name))
    assert [r.row() for r in bring_in(pieces, sample(name), batch=batch)] == [r.row() for r in reports]
    for report in reports:
        assert paths(pieces, report.conversation_id) == paths(whole, report.conversation_id)


@pytest.mark.parametrize("name", FORMATS)
def test_a_copied_conversation_is_the_same(name: str) -> None:
    """What a dry run works on is what the store has: branches, checkpoints, chains."""
    source, target = MemoryStore(), MemoryStore()
    for report in bring_in(source, sample(name)):
        key = ConversationKey(user="u", conversation_id=report.conversation_id)
        asyncio.run(copy_conversation(source, target, key))
        assert paths(target, report.conversation_id) == paths(source, report.conversation_id)
        assert asyncio.run(target.branches(key)) == asyncio.run(source.branches(key))
        line = CheckpointKey(user="u", conversation_id=report.conversation_id)
        assert asyncio.run(target.newest(line)) == asyncio.run(source.newest(line))
    assert problems_of(target) == ()


def test_problems_beyond_the_kept_ones_are_counted() -> None:
    """A file of broken lines cannot fill the memory, and its exit code still says partial."""
    (report,) = bring_in(MemoryStore(), unnamed("A") + b"{]\n" * 1500)
    assert (report.problem_count, len(report.problems)) == (1500, MAX_PROBLEMS)
    assert all(isinstance(problem, Problem) for problem in report.problems)
