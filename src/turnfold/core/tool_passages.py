"""What tools did, in lines that a reader can follow: files touched, commands, what came of them, what went wrong.

Most of a tool's output is content that can be read again: of it only outcomes and errors are told. Output of tools that
merely read (files, listings, searches) is never an event, so nothing of it is told unless the tool failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from turnfold.core.passage import Passage, shorten
from turnfold.core.text.scripts import Language
from turnfold.messages.model import Message, Text, ToolCall, ToolResult

OUTCOME, COMMAND, READ, CHANGED, WRONG = 0.8, 0.35, 0.25, 0.7, 0.9
"""Factors: people and agents say in words what matters; what tools say is told where they do not."""
MOST_OUTCOMES, MOST_ERRORS = 2, 2
"""Most lines told of one result, of each sort."""
SHORT_LINES = 3
"""A result of at most so many lines is an answer: its last line is told though no word of it says so."""
LONGEST_PATH = 200
RAW_LINES = 3
"""Lines of a result told where nothing else in the conversation tells anything."""

FILE_LABELS: Final[dict[Language, dict[str, str]]] = {
    "en": {"changed": "Files changed", "read": "Files read"},
    "zh": {"changed": "改动的文件", "read": "读过的文件"},
}
_HOW: Final = {label: how for table in FILE_LABELS.values() for how, label in table.items()}
_FILE_LABEL: Final = re.compile(rf"({'|'.join(map(re.escape, _HOW))})(?: \((/[^)]*)\))?$")

_READS = re.compile(
    r"read|view|cat\b|open_file|list|ls\b|glob|grep|search|find|fetch_file|get_file|show_file", re.IGNORECASE
)
_CHANGES = re.compile(
    r"edit|write|create_file|patch|replace|insert|update_file|delete_file|remove_file|move|rename", re.IGNORECASE
)
_PATH_KEYS = ("path", "file_path", "filepath", "filename", "file", "target_file", "notebook_path")
_MAIN_KEYS = ("command", "cmd", "query", "url", "title", "pattern", "description", "prompt", "text", "message", "name")
_PATCHED = re.compile(r"\*\*\* (?:Add|Update|Delete) File: ([^\n\\\"]{1,200})")

WRONG_LINE = re.compile(
    r"^\s*(?:E\s{2,}\S|ERROR\b|FAILED\b|FATAL\b|[Ee]rror(?:\[\w+\])?:|fatal:|panic:)|\b[A-Z][\w.]*(?:Error|Exception)\b(?::|\s|$)"
    r"|\w\.\w*(?:Error|Exception):|\b(?:command not found|[Pp]ermission denied|[Nn]o such file|timed out|[Cc]onnection refused"
    r"|exit(?:ed with)? (?:code|status) [1-9]\d*|[1-9]\d* (?:failed|errors?)|status[\": ]+5\d\d)\b|报错|失败|异常|超时|拒绝"
)
_OUTCOME = re.compile(
    r"\b(?:created|opened|merged|closed|deployed|published|released|installed|uninstalled|deleted|removed|renamed|uploaded|sent"
    r"|pass(?:ed|es)|succeeded|success(?:fully)?|completed|finished|listening on|started|restarted|built|pushed|committed|applied"
    r"|rolled back|switched to|resolved)\b|已[建创合部发安删上重启完提应]|成功|完成|通过",
    re.IGNORECASE,
)
_NO_EVENT = re.compile(
    r"^\s*(?:[#>|+@*<{}\[\]()\"'`-]|\d+[|:]|import |from \S+ import|def |class |async |return |raise |except|if |for |File \")"
    r"|\b(?:DEBUG|TRACE)\b|[;{]\s*$|^[\w./-]+:\d+:|remote:"
)
_FIELD = re.compile(r"^[A-Z][\w -]{1,24}:\s")
_LOG_PREFIX = re.compile(r"^(?:E\s{2,}|>\s+|\[[\d:.]+\]\s+)")


class ToolLines:
    """The tools of a stretch of messages, by the ids of their calls."""

    def __init__(self, messages: Iterable[Message], language: Language) -> None:
        self._names = {call.id: call.name for message in messages for call in message.calls}
        self._labels = FILE_LABELS[language]

    def name(self, result: ToolResult) -> str | None:
        """Return the name of the tool that gave a result, where anything says it."""
        return result.name or self._names.get(result.call_id)

    def call(self, index: int, call: ToolCall, speaker: str) -> Iterator[Passage]:
        """Tell a call by its main argument; a call that only touches a file is told by `files` instead."""
        arguments = _arguments(call)
        if _touched(call, arguments):
            return
        main = next((str(arguments[key]) for key in _MAIN_KEYS if arguments.get(key)), None)
        said = " ".join((call.arguments if main is None else main)[:1000].split())
        yield Passage(
            message=index, speaker=speaker, text=f"-> {call.name}: {shorten(said)}", factor=COMMAND, alone=True
        )

    def result(self, index: int, result: ToolResult, speaker: str) -> Iterator[Passage]:
        """Tell what went wrong and what came of a call; nothing of content that was merely read."""
        name = self.name(result) or ""
        lines = _lines(result)
        reading = _READS.search(name) is not None
        if result.is_error:
            yield from _told(index, speaker, lines[-MOST_ERRORS:], wrong=True)
            return
        if reading or not lines or lines[0][:1] in "{[":
            return
        wrong = [line for line in lines if WRONG_LINE.search(line) and not _NO_EVENT.search(line)]
        yield from _told(index, speaker, list(dict.fromkeys(wrong))[-MOST_ERRORS:], wrong=True)
        if not wrong and not _CHANGES.search(name):
            yield from _told(index, speaker, _outcomes(lines), wrong=False)

    def files(self, messages: Sequence[Message], earlier: Iterable[Passage]) -> Iterator[Passage]:
        """Tell the files that calls changed, then those they only read, with those of an earlier summary, each once."""
        seen: dict[tuple[str, str], int] = {}
        for passage in earlier:
            label = _FILE_LABEL.match(passage.speaker)
            if label:
                seen[_HOW[label[1]], f"{label[2]}/{passage.text}" if label[2] else passage.text] = passage.message
        for index, message in enumerate(messages):
            for call in message.calls:
                for path, how in _touched(call, _arguments(call)):
                    seen[how, path] = index
        folder = common_folder([path for _, path in seen])
        for how, factor in (("changed", CHANGED), ("read", READ)):
            for (at, path), index in seen.items():
                if at != how or (how == "read" and ("changed", path) in seen):
                    continue
                inside = bool(folder) and path.startswith(folder + "/")
                speaker = f"{self._labels[how]} ({folder})" if inside else self._labels[how]
                text = path[len(folder) + 1 :] if inside else path
                yield Passage(message=index, speaker=speaker, text=text, section="details", factor=factor)


def is_file_label(label: str) -> bool:
    """Return whether a line under this label lists files."""
    return _FILE_LABEL.match(label) is not None


def is_changed_label(label: str) -> bool:
    """Return whether a line under this label lists files that were changed."""
    match = _FILE_LABEL.match(label)
    return match is not None and _HOW[match[1]] == "changed"


def common_folder(paths: Sequence[str]) -> str:
    """Return the folder that all absolute ones of at least two `paths` share, without its last slash, or ""."""
    parts = [path.split("/")[:-1] for path in paths if path.startswith("/")]
    if len(parts) < 2:
        return ""
    low, high = min(parts), max(parts)
    shared = next((at for at, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), len(low))
    return "/".join(low[:shared]) if shared > 1 else ""


def raw_passages(messages: Sequence[Message], speaker: str) -> Iterator[Passage]:
    """Yield the first lines of results as they are: for a conversation in which nothing else tells anything."""
    for index, message in enumerate(messages):
        for result in message.results:
            for line in _lines(result)[:RAW_LINES]:
                yield Passage(message=index, speaker=speaker, text=shorten(line), factor=OUTCOME, alone=True)


def _lines(result: ToolResult) -> list[str]:
    text = "\n".join(part.text for part in result.content if isinstance(part, Text))
    return [" ".join(line.split()) for line in text.splitlines() if any(char.isalnum() for char in line)]


def _outcomes(lines: Sequence[str]) -> list[str]:
    events = [line for line in lines if not (_NO_EVENT.search(line) or _FIELD.search(line))]
    found = [line for line in events if _OUTCOME.search(line)]
    if not found and len(lines) <= SHORT_LINES:
        found = events[-1:]
    return found[-MOST_OUTCOMES:]


def _told(index: int, speaker: str, lines: Iterable[str], *, wrong: bool) -> Iterator[Passage]:
    for line in lines:
        yield Passage(
            message=index,
            speaker=speaker,
            text=shorten(_LOG_PREFIX.sub("", line)),
            section="errors" if wrong else "happened",
            factor=WRONG if wrong else OUTCOME,
            alone=True,
        )


def _arguments(call: ToolCall) -> dict[str, Any]:
    """The arguments as an object; a call whose arguments are none has none."""
    try:
        value = msgspec.json.decode(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _touched(call: ToolCall, arguments: dict[str, Any]) -> list[tuple[str, str]]:
    """The files that a call changes or reads, as (path, "changed" or "read")."""
    patched = _PATCHED.findall(call.arguments)
    if patched:
        return [(path.strip(), "changed") for path in patched]
    path = next((arguments[key] for key in _PATH_KEYS if isinstance(arguments.get(key), str)), "").strip()
    if not path or len(path) > LONGEST_PATH or "\n" in path:
        return []
    if _CHANGES.search(call.name) and not call.name.lower().startswith("read"):
        return [(path, "changed")]
    return [(path, "read")] if _READS.search(call.name) else []
