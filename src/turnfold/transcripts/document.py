"""What decoding yields: events in file order, and the `Transcript` that collects them.

A codec turns a file into events and knows nothing of strictness: it reports a broken place as a `Problem` and goes on.
`strictly` turns problems into errors, `collect` gathers events into transcripts. A large import can instead consume the
events themselves and hold one message at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias, assert_never

import msgspec
from msgspec.structs import replace

from turnfold.errors import TranscriptError
from turnfold.messages.canonical import js_json
from turnfold.messages.log import MAIN
from turnfold.messages.model import Message, Tool

MAX_PROBLEMS = 1000
"""Problems kept one by one; beyond, they are only counted, so that a file of broken lines cannot fill the memory."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Something in the file that could not be taken as it is.

    `error`: the place was left out, so an import is partial. `note`: it was taken after a repair that is named here.
    """

    place: str
    reason: str
    cure: str = ""
    level: Literal["error", "note"] = "error"

    def as_error(self) -> TranscriptError:
        """Return the same facts as an exception."""
        return TranscriptError(
            self.place, self.reason, self.cure or "Repair the file, or import it without strictness."
        )


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation begins. `conversation_id` is the format's own, None where it has none."""

    format: str
    conversation_id: str | None = None
    title: str | None = None
    metadata: dict[str, Any] = {}
    tools: tuple[Tool, ...] = ()


class Titled(msgspec.Struct, frozen=True, kw_only=True):
    """The conversation's title, met after its start."""

    title: str


class Forked(msgspec.Struct, frozen=True, kw_only=True):
    """A branch begins: it shares the path of `parent` up to and including message `after` (None: it shares nothing)."""

    name: str
    parent: str = MAIN
    after: str | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One message, the next one on `branch`."""

    message: Message
    branch: str = MAIN
    place: str = ""


class SummaryBoundary(msgspec.Struct, frozen=True, kw_only=True):
    """A foreign summary whose covered messages are all in the file: `summary_id` stands for everything on its branch up to
    and including message `last_id`. Only such a summary may become a checkpoint.
    """

    summary_id: str
    last_id: str
    branch: str = MAIN


class OpaqueRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row that no message was made from, kept as JSON text. `after` is the message before it in the file."""

    place: str
    kind: str
    payload: str
    after: str | None = None


def opaque_row(place: str, value: Any, after: str | None = None, kind: str | None = None) -> OpaqueRow:
    """Return a row that no message was made from; its kind is its `type` where none is given."""
    own = value.get("type") if isinstance(value, dict) else None
    name = kind or (own if isinstance(own, str) and own else "unknown")
    return OpaqueRow(place=place, kind=name, payload=js_json(value), after=after)


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A row left out on purpose: it says again what another row says. `kind` is the reason, for counting."""

    kind: str


Event: TypeAlias = Start | Titled | Forked | Entry | SummaryBoundary | OpaqueRow | Skipped | Problem


class BranchPath(msgspec.Struct, frozen=True, kw_only=True):
    """A branch of a transcript: where it leaves `parent` (after message `after`), and its own messages."""

    name: str
    parent: str = MAIN
    after: str | None = None
    messages: tuple[Message, ...] = ()


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation as a file holds it. `messages` is the main path, oldest first.

    `skipped` and `opaque_counts` say how many rows of which kind gave no message; `problem_count` counts problems of
    level `error`, also those beyond the `MAX_PROBLEMS` kept.
    """

    format: str
    messages: tuple[Message, ...] = ()
    branches: tuple[BranchPath, ...] = ()
    boundaries: tuple[SummaryBoundary, ...] = ()
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    opaque: tuple[OpaqueRow, ...] = ()
    skipped: dict[str, int] = {}
    conversation_id: str | None = None
    title: str | None = None
    metadata: dict[str, Any] = {}
    tools: tuple[Tool, ...] = ()

    @property
    def opaque_counts(self) -> dict[str, int]:
        """Opaque rows by kind."""
        return dict(Counter(row.kind for row in self.opaque))

    @property
    def message_count(self) -> int:
        """Messages over all branches."""
        return len(self.messages) + sum(len(branch.messages) for branch in self.branches)


def strictly(events: Iterable[Event]) -> Iterator[Event]:
    """Pass events on; raise TranscriptError at the first problem of level `error`."""
    for event in events:
        if isinstance(event, Problem) and event.level == "error":
            raise event.as_error()
        yield event


class _Collector:
    """Gathers the events of one conversation."""

    def __init__(self, start: Start) -> None:
        self.start, self.title = start, start.title
        self.paths: dict[str, list[Message]] = {MAIN: []}
        self.forks: dict[str, Forked] = {}
        self.boundaries: list[SummaryBoundary] = []
        self.problems: list[Problem] = []
        self.problem_count = 0
        self.opaque: list[OpaqueRow] = []
        self.skipped: Counter[str] = Counter()
        self.seen: dict[str, Message] = {}
        self.numbers: Counter[str] = Counter()

    def add(self, event: Event) -> None:
        match event:
            case Start():
                raise AssertionError("one collector holds one conversation")
            case Titled(title=title):
                self.title = title
            case Forked(name=name):
                self.forks[name] = event
                self.paths.setdefault(name, [])
            case Entry():
                self.add_entry(event)
            case SummaryBoundary():
                self.boundaries.append(event)
            case OpaqueRow():
                self.opaque.append(event)
            case Skipped(kind=kind):
                self.skipped[kind] += 1
            case Problem():
                self.add_problem(event)
            case _ as never:
                assert_never(never)

    def add_entry(self, entry: Entry) -> None:
        message = entry.message
        if message.id in self.seen:
            if self.seen[message.id] == message:
                self.skipped["the same message again"] += 1
                return
            self.add_problem(duplicate_id(message.id, entry.place))
            message = replace(message, id=self.free_id(message.id))
        self.seen[message.id] = message
        self.paths.setdefault(entry.branch, []).append(message)

    def free_id(self, taken: str) -> str:
        """Return an id for a different message under a taken id: nothing is lost, and it is the same at each import."""
        while True:
            self.numbers[taken] += 1
            name = f"{taken}~{self.numbers[taken] + 1}"
            if name not in self.seen:
                return name

    def add_problem(self, problem: Problem) -> None:
        self.problem_count += problem.level == "error"
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)

    def finish(self) -> Transcript:
        branches = tuple(
            BranchPath(name=name, parent=fork.parent, after=fork.after, messages=tuple(self.paths[name]))
            for name, fork in self.forks.items()
        )
        return Transcript(
            format=self.start.format,
            messages=tuple(self.paths[MAIN]),
            branches=branches,
            boundaries=tuple(self.boundaries),
            problems=tuple(self.problems),
            problem_count=self.problem_count,
            opaque=tuple(self.opaque),
            skipped=dict(self.skipped),
            conversation_id=self.start.conversation_id,
            title=self.title,
            metadata=self.start.metadata,
            tools=self.start.tools,
        )


def duplicate_id(message_id: str, place: str) -> Problem:
    """Return the problem of a second message with the same id."""
    return Problem(
        place=place or f"message {message_id!r}",
        reason=f"another message has the id {message_id!r}",
        cure="Give every message its own id; it was kept under a derived one.",
    )


def transcripts_of(events: Iterable[Event]) -> Iterator[Transcript]:
    """Yield each conversation of a file once it is whole, those without messages too. Memory: one conversation."""
    for collector in _collectors(events):
        yield collector.finish()


def collect(events: Iterable[Event], *, strict: bool = False) -> tuple[Transcript, ...]:
    """Return the transcripts that the events make, in file order.

    In: events of one file. Raises TranscriptError when no message was found; with `strict` at the first problem.
    """
    done: list[Transcript] = []
    for transcript in transcripts_of(strictly(events) if strict else events):
        first = next((problem for problem in transcript.problems if problem.level == "error"), None)
        if strict and first:
            raise first.as_error()
        done.append(transcript)
    if not any(transcript.message_count for transcript in done):
        raise nothing_found(done)
    return tuple(done)


def _collectors(events: Iterable[Event]) -> Iterator[_Collector]:
    """Yield a filled collector for each conversation; what comes before the first start belongs to the first one."""
    current: _Collector | None = None
    early: list[Event] = []
    for event in events:
        if isinstance(event, Start):
            if current:
                yield current
            current = _Collector(event)
            for held in early:
                current.add(held)
            early = []
        elif current:
            current.add(event)
        elif len(early) < MAX_PROBLEMS:
            early.append(event)
    if current is None and early:
        current = _Collector(Start(format="unknown"))
        for held in early:
            current.add(held)
    if current:
        yield current


def nothing_found(done: Iterable[Transcript]) -> TranscriptError:
    """Return the error of a file without messages: its first problem, where it has one."""
    for transcript in done:
        for problem in transcript.problems:
            if problem.level == "error":
                return problem.as_error()
    return TranscriptError("file", "it holds no messages", "Give a file with at least one message.")
