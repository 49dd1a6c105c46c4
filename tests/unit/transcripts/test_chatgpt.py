"""ChatGPT exports: the current path, edits as branches, tools paired, large files one conversation at a time."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.unit.transcripts.samples import sample, told
from turnfold.messages.model import Opaque, Reasoning
from turnfold.transcripts import decode, iter_decode
from turnfold.transcripts.document import Start


def conversation(name: str, nodes: Mapping[str, tuple[str | None, str, str]], **fields: Any) -> dict[str, Any]:
    """A conversation of nodes given as (parent, role, text)."""
    mapping: dict[str, Any] = {
        key: {
            "id": key,
            "parent": parent,
            "children": [],
            "message": {
                "author": {"role": role},
                "content": {"content_type": "text", "parts": [text]},
                "create_time": n,
            },
        }
        for n, (key, (parent, role, text)) in enumerate(nodes.items())
    }
    return {"conversation_id": name, "mapping": mapping, **fields}


def test_the_current_path_is_the_main_one_and_regenerations_are_branches() -> None:
    """What the user last saw is the conversation; other answers leave it where they were given."""
    primes, _ = decode(sample("chatgpt_conversations.json"), strict=True)
    assert primes.title == "Primes"
    assert told(primes.messages)[1:] == [
        "assistant: [python]",
        "tool: 25\n",
        "assistant: There are 25.",
        "user: 谢谢",
    ]
    assert [(branch.after, told(branch.messages)) for branch in primes.branches] == [("n1", ["assistant: Perhaps 24."])]


def test_a_call_is_answered_by_what_its_tool_said() -> None:
    """Calls and results are paired although the export has no call ids; arguments are JSON."""
    primes, _ = decode(sample("chatgpt_conversations.json"))
    call, result = primes.messages[1].calls[0], primes.messages[2].results[0]
    assert result.call_id == call.id
    assert json.loads(call.arguments) == {"input": "print(25)"}


def test_thoughts_join_the_reply_that_they_led_to() -> None:
    """Thoughts stand in nodes of their own there; they are the reply's reasoning here."""
    primes, _ = decode(sample("chatgpt_conversations.json"))
    assert primes.messages[1].parts[0] == Reasoning(text="Count\nSieve them.")


def test_images_are_kept_as_they_are() -> None:
    """A pointer to a file that is not in the export is kept as opaque content."""
    primes, _ = decode(sample("chatgpt_conversations.json"))
    first = primes.messages[0].parts[0]
    assert isinstance(first, Opaque)
    assert json.loads(first.payload)["asset_pointer"] == "file-service://f1"


def test_without_a_current_node_the_newest_leaf_ends_the_main_path() -> None:
    """Exports that do not say which path is current are read up to what was written last."""
    nodes = {"a": (None, "user", "one"), "b": ("a", "assistant", "old"), "c": ("a", "assistant", "new")}
    (transcript,) = decode(json.dumps([conversation("x", nodes)]).encode())
    assert told(transcript.messages) == ["user: one", "assistant: new"]
    assert told(transcript.branches[0].messages) == ["assistant: old"]


def test_a_circle_of_parents_ends_and_is_said() -> None:
    """A mapping that nobody should have written is read without hanging, and every message comes out once."""
    nodes = {"a": ("b", "user", "one"), "b": ("a", "assistant", "two")}
    (transcript,) = decode(json.dumps([conversation("x", nodes)]).encode())
    assert transcript.message_count == 2
    assert any("circle" in problem.reason for problem in transcript.problems)


def test_large_exports_are_read_one_conversation_at_a_time() -> None:
    """An export is one array of all conversations; the first is out long before the last was read."""
    text = 'ab\\"[{' * 5000
    fed = 0

    def pieces() -> Iterator[bytes]:
        nonlocal fed
        yield b"[ "
        for number in range(200):
            fed += 1
            data = json.dumps(conversation(str(number), {"n": (None, "user", text)})).encode()
            half = len(data) // 2
            yield from ((b"\n," if number else b"") + data[:half], data[half:])
        yield b"]\n"

    events = iter_decode(pieces())
    next(event for event in events if isinstance(event, Start))
    assert fed < 150
    assert sum(isinstance(event, Start) for event in events) == 199


def test_a_truncated_export_gives_its_whole_conversations() -> None:
    """A download that broke off is reported, and what came through is read."""
    data = sample("chatgpt_conversations.json")
    for cut in (len(data) - 100, len(data) - 1):
        transcripts = decode(data[:cut])
        assert transcripts[0].conversation_id == "conv-primes"
        problems = [problem for transcript in transcripts for problem in transcript.problems]
        assert any("breaks off" in problem.reason for problem in problems)
