"""The prompts as files: loading, versions, the hash that audits record, and putting one call's request together.

A preset is a folder of Markdown files that replace shipped ones by name; what it does not replace stays. Every file opens
with a comment that says its version, which is not sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from importlib import resources
from pathlib import Path
from typing import Final

import msgspec

from turnfold.core.plan import Mode, SummaryRequest
from turnfold.core.protocol import word_limit
from turnfold.core.text.scripts import language_of
from turnfold.errors import ConfigError, NotFoundError

DEFAULT_PRESET: Final = "default"
PLACEHOLDERS: Final[Mapping[str, frozenset[str]]] = {
    "material_transcript": frozenset({"frame"}),
    "material_harness_json_v1": frozenset({"frame"}),
    "material_dream_text_v0": frozenset({"frame"}),
    "material_automemory_recursive_v1": frozenset({"frame", "segment", "segments"}),
    "focus": frozenset({"focus"}),
    "answer_plain_text": frozenset({"words", "characters"}),
    "answer_structured_json": frozenset({"words", "characters"}),
    "closing": frozenset({"task"}),
}
_TASKS: Final[dict[Mode, str]] = {
    "sliding_window": "the background of the messages that stay",
    "all": "all that is needed to carry on without the messages",
    "bounded_recent": "what must be remembered of the turns that leave",
    "mask": "the background of the messages that stay",
}
_HEADER = re.compile(r"<!-- version (\d+):[^\n]*-->\n")
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_HASH_BYTES = 8


class Prompts(msgspec.Struct, frozen=True, kw_only=True):
    """A preset's texts by file name; `hash` changes whenever anything that is sent does."""

    name: str
    texts: Mapping[str, str]
    hash: str

    def fill(self, file: str, **values: str | int) -> str:
        """Return one text with its placeholders filled in; values are not searched for placeholders."""
        return _PLACEHOLDER.sub(lambda match: str(values[match[1]]), self.texts[file])


def load_prompts(preset: str | Path = DEFAULT_PRESET) -> Prompts:
    """Return the shipped prompts, or those with the files of the folder `preset` in their place.

    Raises NotFoundError for no such folder, ConfigError with every problem of its files.
    """
    shipped = dict(_shipped())
    own = {} if preset == DEFAULT_PRESET else _own(Path(preset), shipped)
    files = {**shipped, **own}
    texts = {name: _HEADER.sub("", text, count=1).strip() for name, text in files.items()}
    return Prompts(name=str(preset), texts=texts, hash=_hash(texts, files))


def _shipped() -> Iterator[tuple[str, str]]:
    for file in (resources.files("turnfold.summarizers") / "prompts").iterdir():
        if file.name.endswith(".md"):
            yield file.name.removesuffix(".md"), file.read_text(encoding="utf-8")


def _own(folder: Path, shipped: Mapping[str, str]) -> dict[str, str]:
    if not folder.is_dir():
        raise NotFoundError("prompt preset", str(folder), "Give `default` or a folder of Markdown files.")
    files = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}
    problems = [problem for name, text in files.items() for problem in _problems(folder, name, text, shipped)]
    if not files:
        problems.append(f"{folder}: there are no Markdown files. Add one named after a shipped prompt.")
    if problems:
        raise ConfigError(problems)
    return files


def _problems(folder: Path, name: str, text: str, shipped: Mapping[str, str]) -> Iterator[str]:
    path = folder / f"{name}.md"
    if name not in shipped:
        yield f"{path}: no prompt has this name. Use one of {', '.join(sorted(shipped))}."
        return
    if not _HEADER.match(text):
        yield f"{path}: the first line does not say its version. Write <!-- version 1: what it is -->."
    if not _HEADER.sub("", text, count=1).strip():
        yield f"{path}: there is no text. Write the prompt, or remove the file."
    for found in sorted(set(_PLACEHOLDER.findall(text)) - PLACEHOLDERS.get(name, frozenset())):
        known = ", ".join(sorted(PLACEHOLDERS.get(name, frozenset()))) or "none"
        yield f"{path}: nothing fills in {{{{{found}}}}}. This prompt's placeholders: {known}."


def _hash(texts: Mapping[str, str], files: Mapping[str, str]) -> str:
    """Return `p<highest version>:<hash of all texts>`."""
    versions = [int(match[1]) for text in files.values() if (match := _HEADER.match(text))]
    data = "\0".join(f"{name}\0{texts[name]}" for name in sorted(texts))
    return f"p{max(versions, default=1)}:{blake2b(data.encode(), digest_size=_HASH_BYTES).hexdigest()}"


class Instructions(msgspec.Struct, frozen=True, kw_only=True):
    """What one call says beside the material: the standing order, the instruction before it and again after it."""

    system: str
    before: str
    after: str

    def around(self, material: str) -> str:
        """Return the user message of the call."""
        return f"{self.before}\n\n{material}\n\n{self.after}"

    @property
    def text(self) -> str:
        """Everything, for telling an echo."""
        return f"{self.system}\n{self.before}\n{self.after}"


def instructions(
    prompts: Prompts, request: SummaryRequest, *, has_previous: bool, segment: int = 1, segments: int = 1
) -> Instructions:
    """Return the instructions for one call of a request; `segment` of `segments` matters to recursive folding alone."""
    return Instructions(
        system=prompts.texts["system"],
        before="\n\n".join(_before(prompts, request, has_previous=has_previous, segment=segment, segments=segments)),
        after="\n\n".join(_after(prompts, request)),
    )


def _before(
    prompts: Prompts, request: SummaryRequest, *, has_previous: bool, segment: int, segments: int
) -> Iterator[str]:
    yield prompts.texts["sliding_window" if request.mode == "mask" else request.mode]
    if has_previous:
        yield prompts.texts["previous_summary"]
    if request.focus:
        yield prompts.fill("focus", focus=request.focus)
    yield _answer(prompts, request)
    yield prompts.fill(f"material_{request.input_protocol}", frame=request.frame, segment=segment, segments=segments)
    if request.current_input:
        yield prompts.texts["current_input"]


def _after(prompts: Prompts, request: SummaryRequest) -> Iterator[str]:
    yield prompts.fill("closing", task=_TASKS[request.mode])
    if request.current_input:
        yield prompts.texts["current_input"]
    yield _answer(prompts, request)
    if language_of(_spoken(request)) == "zh":
        yield prompts.texts["closing_zh"]


def _answer(prompts: Prompts, request: SummaryRequest) -> str:
    words = word_limit(request.mode, request.max_tokens)
    return prompts.fill(f"answer_{request.output_format}", words=words, characters=2 * words)


def _spoken(request: SummaryRequest) -> Iterator[str]:
    """What people and the assistant said, newest first: that is the language to write in, not that of tool output."""
    yield request.current_input
    for message in reversed(request.messages):
        if message.role in ("user", "assistant"):
            yield message.text
