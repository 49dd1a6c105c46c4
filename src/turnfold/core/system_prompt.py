"""The system prompt: base text and memory files compiled into one text that stays the same between compactions.

A change of memory in between is told by an update message; the next compaction, which rewrites the context anyway, folds
it into a recompiled prompt (the agent seed, §12.6).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from turnfold.messages.canonical import digest_text
from turnfold.messages.model import Message, Text

MAX_FILE_CHARS = 20_000
"""Characters of one memory file that reach the prompt by default."""

REVISION, FILES = "revision", "files"
"""Metadata keys of an update message: the memory's revision that it brings the reader to, and the files' digests."""


class MemoryFile(msgspec.Struct, frozen=True, kw_only=True):
    """One memory file: its name within the memory folder and its text."""

    name: str
    text: str


class PromptInput(msgspec.Struct, frozen=True, kw_only=True):
    """What a prompt is compiled from, as it is now."""

    base: str = ""
    files: tuple[MemoryFile, ...] = ()


class CompiledPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled prompt. `revision` changes exactly when base or memory does; `files` holds (name, digest) of each file."""

    text: str
    revision: str
    files: tuple[tuple[str, str], ...] = ()


def compile_prompt(given: PromptInput, max_file_chars: int = MAX_FILE_CHARS) -> CompiledPrompt:
    """Compile base and memory files, in name order, each file limited to `max_file_chars` characters."""
    files = sorted(given.files, key=lambda file: file.name)
    blocks = [given.base, *(_block(file, max_file_chars) for file in files)]
    return CompiledPrompt(
        text="\n\n".join(block for block in blocks if block),
        revision=digest_text(given.base, *(part for file in files for part in (file.name, file.text))),
        files=tuple((file.name, digest_text(file.text)) for file in files),
    )


def _block(file: MemoryFile, limit: int) -> str:
    name = file.name.replace('"', "'")
    return f'<memory file="{name}">\n{_limited(file.text.strip(), limit)}\n</memory>'


def _limited(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[the file goes on; {len(text) - limit} more characters are not shown]"


def update_message(
    message_id: str,
    known: Mapping[str, str],
    given: PromptInput,
    *,
    created_at: int,
    max_file_chars: int = MAX_FILE_CHARS,
) -> Message:
    """Return the message that brings a reader who knows the files `known` (name to digest) to the memory as it is now."""
    current = compile_prompt(given, max_file_chars)
    lines = "\n".join(_changes(known, given.files, max_file_chars)) or "The base instructions changed."
    return Message(
        id=message_id,
        role="user",
        kind="memory_update",
        parts=(Text(text=f"<memory_update>\n{lines}\n</memory_update>"),),
        created_at=created_at,
        metadata={REVISION: current.revision, FILES: dict(current.files)},
    )


def _changes(known: Mapping[str, str], files: Sequence[MemoryFile], limit: int) -> Iterator[str]:
    for file in sorted(files, key=lambda file: file.name):
        if known.get(file.name) != digest_text(file.text):
            yield f"{file.name} {'changed' if file.name in known else 'was added'}; it now reads:"
            yield _limited(file.text.strip(), limit)
    present = {file.name for file in files}
    yield from (f"{name} was removed." for name in sorted(known) if name not in present)


def told(prompt: CompiledPrompt, update: Message | None) -> tuple[str, Mapping[str, str]]:
    """Return the revision and files that a reader of the prompt and of the newest update message knows."""
    if update is None or not isinstance(update.metadata.get(REVISION), str):
        return prompt.revision, dict(prompt.files)
    files = update.metadata.get(FILES)
    return update.metadata[REVISION], files if isinstance(files, dict) else {}
