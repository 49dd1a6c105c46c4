"""Pure codecs: every format of conversations that people hold, in and out. No I/O: bytes come in, values go out.

`decode` gives whole transcripts; `iter_decode` gives their events one by one, for files larger than memory. Formats are
told by content. Every failure is a TranscriptError with place, reason and cure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from turnfold.errors import TranscriptError
from turnfold.transcripts import (
    anthropic,
    chatgpt,
    claude_code,
    codex,
    html,
    jsonl,
    letta,
    markdown,
    openai_chat,
    openai_responses,
    sillytavern,
)
from turnfold.transcripts.detect import HEAD_BYTES, detect
from turnfold.transcripts.document import Event, Transcript, collect, strictly
from turnfold.transcripts.reading import peek


class Codec(msgspec.Struct, frozen=True, kw_only=True):
    """One format. `events` reads, `encode` writes (None: this format is only read, or only written)."""

    name: str
    label: str
    events: Callable[[Iterable[bytes]], Iterator[Event]] | None = None
    recognizes: Callable[[Any], bool] | None = None
    encode: Callable[[Transcript], Iterator[bytes]] | None = None


CODECS: Final[dict[str, Codec]] = {
    codec.name: codec
    for codec in (
        Codec(
            name="turnfold",
            label="turnfold JSON Lines",
            events=jsonl.events,
            recognizes=jsonl.recognizes,
            encode=jsonl.encode,
        ),
        Codec(name="chatgpt", label="ChatGPT export", events=chatgpt.events, recognizes=chatgpt.recognizes),
        Codec(name="codex", label="Codex rollout", events=codex.events, recognizes=codex.recognizes),
        Codec(
            name="sillytavern", label="SillyTavern chat", events=sillytavern.events, recognizes=sillytavern.recognizes
        ),
        Codec(
            name="claude_code",
            label="Claude Code session",
            events=claude_code.events,
            recognizes=claude_code.recognizes,
        ),
        Codec(
            name="letta",
            label="letta-code local, pi sessions",
            events=letta.events,
            recognizes=letta.recognizes,
            encode=letta.encode,
        ),
        Codec(
            name="openai_responses",
            label="OpenAI Responses",
            events=openai_responses.events,
            recognizes=openai_responses.recognizes,
            encode=openai_responses.encode,
        ),
        Codec(
            name="anthropic",
            label="Anthropic Messages",
            events=anthropic.events,
            recognizes=anthropic.recognizes,
            encode=anthropic.encode,
        ),
        Codec(
            name="openai_chat",
            label="OpenAI Chat Completions",
            events=openai_chat.events,
            recognizes=openai_chat.recognizes,
            encode=openai_chat.encode,
        ),
        Codec(name="markdown", label="Markdown", encode=markdown.encode),
        Codec(name="html", label="HTML page", encode=html.encode),
    )
}
"""Formats by name, the most specific first: detection asks them in this order."""


def detect_format(head: bytes) -> str:
    """Return the name of the format that a file is in, by its first bytes. Raises TranscriptError."""
    return detect(head, [(codec.name, codec.recognizes) for codec in CODECS.values() if codec.recognizes])


def iter_decode(
    chunks: Iterable[bytes] | bytes, *, format_name: str | None = None, strict: bool = False
) -> Iterator[Event]:
    """Yield the events of a file, one at a time. Memory is bounded for formats of lines.

    In: the file's bytes in pieces of any size (an open binary file will do), the format's name (default: detected), and
    whether the first broken place is an error. Raises TranscriptError.
    """
    pieces: Iterable[bytes] = (chunks,) if isinstance(chunks, bytes) else chunks
    if format_name is None:
        head, pieces = peek(pieces, HEAD_BYTES)
        format_name = detect_format(head)
    events = _codec(format_name, "read").events
    assert events is not None
    found = events(pieces)
    return strictly(found) if strict else found


def decode(
    chunks: Iterable[bytes] | bytes, *, format_name: str | None = None, strict: bool = False
) -> tuple[Transcript, ...]:
    """Return the conversations of a file, whole. Arguments as for `iter_decode`.

    Raises TranscriptError when the file holds no message; with `strict` also for the first broken place, and otherwise
    reports those in `problems`.
    """
    return collect(iter_decode(chunks, format_name=format_name, strict=strict), strict=strict)


def decode_one(chunks: Iterable[bytes] | bytes, *, format_name: str | None = None, strict: bool = False) -> Transcript:
    """Return the only conversation of a file. Raises TranscriptError as `decode` does, and when there are several."""
    events = iter_decode(chunks, format_name=format_name, strict=strict)
    found = collect(events, strict=strict)
    if len(found) != 1:
        raise TranscriptError("file", f"it holds {len(found)} conversations", "Split it, or import it to choose one.")
    return found[0]


def encode(transcript: Transcript, format_name: str) -> Iterator[bytes]:
    """Yield a transcript in a format, in pieces. Raises TranscriptError for a format that is unknown or only read."""
    writer = _codec(format_name, "write").encode
    assert writer is not None
    return writer(transcript)


def holds_branches(transcript: Transcript, format_name: str) -> bool:
    """Whether the branches of a transcript are in what `encode` writes; the other formats hold its main path alone."""
    if format_name == "letta":
        return letta.is_session(transcript)
    return format_name in ("turnfold", "markdown", "html")


def _codec(name: str, verb: str) -> Codec:
    able = [codec.name for codec in CODECS.values() if (codec.events if verb == "read" else codec.encode)]
    if name not in able:
        raise TranscriptError("format", f"turnfold cannot {verb} {name!r}", f"Choose one of: {', '.join(able)}.")
    return CODECS[name]
