"""Every reader under broken and hostile files: a conversation or one typed error, never anything else, in bounded time."""

import json
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.transcripts.samples import FORMATS, sample
from turnfold.errors import TranscriptError
from turnfold.transcripts import CODECS, decode, encode, jsonl
from turnfold.transcripts.document import Transcript

READERS = [name for name, codec in CODECS.items() if codec.events]
INTERESTING: list[Any] = [
    None, True, 0, -1, 1.5, 2**53, 2**64, 10**30, 1e308, "", " ", "x", "\ud800", "2026-01-01T00:00:00Z", [], [[]], [{}], {},
    {"type": "text"}, {"type": "text", "text": 1}, {"type": "tool_use"}, {"role": "user"}, {"a": {"b": []}}, "data:image/png;base64,",
]  # fmt: skip


def samples_of(name: str) -> list[bytes]:
    """Samples that a reader takes; the native one is made from all others."""
    if name == "turnfold":
        return [b"".join(encode(t, name)) for file in FORMATS for t in decode(sample(file))]
    return [sample(file) for file, kind in FORMATS.items() if kind == name]


def flip(data: bytes, rng: random.Random) -> bytes:
    """Change some bytes."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        changed[rng.randrange(len(changed))] = rng.choice((rng.randrange(256), *b'{}[]",:\\\n0e-tfn'))
    return bytes(changed)


def cut(data: bytes, rng: random.Random) -> bytes:
    """Cut the file, or take a stretch out of it."""
    start = rng.randrange(len(data))
    return data[:start] if rng.random() < 0.5 else data[:start] + data[start + rng.randint(1, 200) :]


def shuffle(data: bytes, rng: random.Random) -> bytes:
    """Repeat, drop and swap lines."""
    lines = data.splitlines(keepends=True)
    return b"".join(rng.choices(lines, k=rng.randint(1, len(lines) + 2)))


def splice(data: bytes, rng: random.Random) -> bytes:
    """Put a stretch of the file somewhere else."""
    start, target = rng.randrange(len(data)), rng.randrange(len(data))
    return data[:target] + data[start : start + rng.randint(1, 300)] + data[target:]


def restructure(data: bytes, rng: random.Random) -> bytes:
    """Change values within the JSON: this reaches what broken bytes never do."""
    lines = data.splitlines()
    index = rng.randrange(len(lines))
    value = json.loads(lines[index])
    for _ in range(rng.randint(1, 3)):
        value = changed(value, rng)
    lines[index] = json.dumps(value).encode()
    return b"\n".join(lines)


def changed(value: Any, rng: random.Random) -> Any:
    """The value with one of its parts replaced, removed or doubled."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        match rng.randrange(6):
            case 0:
                return {name: item for name, item in value.items() if name != key}
            case 1:
                return {**value, rng.choice(list(value)): value[key]}
            case _:
                return {**value, key: changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        index = rng.randrange(len(value))
        repeat = rng.choice((0, 1, 1, 1, 1, 2))
        return [*value[:index], *[changed(value[index], rng)] * repeat, *value[index + 1 :]]
    return rng.choice(INTERESTING)


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (flip, cut, shuffle, splice, restructure, restructure)


def check(transcript: Transcript) -> None:
    """What comes out is sound: ids are unique, messages keep their shape, branches leave known messages, all can be kept."""
    paths = {
        "main": list(transcript.messages),
        **{branch.name: list(branch.messages) for branch in transcript.branches},
    }
    ids = [message.id for path in paths.values() for message in path]
    assert len(set(ids)) == len(ids)
    assert transcript.message_count == len(ids)
    for path in paths.values():
        for message in path:
            assert jsonl.misshapen(message) is None, message
    for name in ("turnfold", "openai_chat", "anthropic", "openai_responses", "letta", "markdown", "html"):
        for piece in encode(transcript, name):
            piece.decode("utf-8")


def fuzz(name: str, rounds: int, seed: int) -> tuple[int, int]:
    """Feed `rounds` mutated files to a reader; return how many gave a conversation and how many an error."""
    rng = random.Random(seed)
    files, read, refused = samples_of(name), 0, 0
    for number in range(rounds):
        data = rng.choice(files)
        for _ in range(rng.choice((1, 1, 2))):
            try:
                data = rng.choice(MUTATIONS)(data, rng) or b"x"
            except ValueError:
                break  # a second mutation met what is no JSON any more
        start = time.perf_counter()
        try:
            transcripts = decode(data, format_name=name if number % 3 else None, strict=number % 5 == 0)
        except TranscriptError as error:
            refused += bool(error.place and error.reason and error.cure)
        else:
            read += 1
            for transcript in transcripts if number % 10 == 0 else ():
                check(transcript)
        assert time.perf_counter() - start < 2 + len(data) / 1e6
    return read, refused


@pytest.mark.parametrize("name", READERS)
def test_a_mutated_file_gives_a_conversation_or_one_typed_error(name: str) -> None:
    """2,000 mutated files for each reader, another 2,000 at each run; a failure prints its seed."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    read, refused = fuzz(name, 2000, seed)
    assert read > 100
    assert refused > 20


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", READERS)
def test_a_hundred_thousand_mutated_files(name: str) -> None:
    """The same, 100,000 files for each reader."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    read, refused = fuzz(name, 100_000, seed)
    assert read + refused == 100_000


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("unit", [b"[", b'{"a":', b'"', b"\\", b"\n", b"{}\n", b'[{"role":', b"0", b"\xff", b" "])
def test_a_megabyte_of_one_thing_is_answered_in_time(name: str, unit: bytes) -> None:
    """Files made to be slow or deep are answered in about a second a megabyte: of processor time, with room for a slow machine."""
    start = time.process_time()
    with pytest.raises(TranscriptError):
        decode(unit * (1_000_000 // len(unit)), format_name=name)
    assert time.process_time() - start < 10
