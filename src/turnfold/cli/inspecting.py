"""`turnfold inspect`: what a conversation file holds, and which API would take it as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import typer

from turnfold.cli import options
from turnfold.cli.terminal import console, note, print_json, table, visible
from turnfold.cli.transcripts import File, FormatName, Which, transcripts_in
from turnfold.messages.model import Image, Message, Part
from turnfold.ports import TokenCounter
from turnfold.tokens import make_counter
from turnfold.transcripts import CODECS
from turnfold.transcripts.document import Transcript
from turnfold.transcripts.sendable import violations_of
from turnfold.transcripts.telling import moment

SHOWN = 10
"""Problems and violations told one by one for each conversation; all of them are in the JSON."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("inspect")(inspect)


def inspect(
    file: File,
    conversation: Which = None,
    format_name: FormatName = None,
    counter: options.Counter = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what FILE holds: format, messages, branches, tools, tokens, problems, and which API takes it as it is.

    Exit code 1 when a part of it cannot be read.
    """
    settings = options.settings_from(counter=counter).settings
    counting = make_counter(settings.counter)
    with transcripts_in(file, "inspecting", format_name, conversation) as found:
        documents = [describe(transcript, counting) for transcript in found]
    if as_json:
        print_json({"file": file, "counter": counting.name, "exact": counting.exact, "conversations": documents})
    else:
        _print(documents)
    if any(document["problem_count"] for document in documents):
        raise typer.Exit(1)


def describe(transcript: Transcript, counter: TokenCounter) -> dict[str, Any]:
    """Return what there is to say about a conversation, as a JSON object. Tokens and validity are of the main path."""
    messages = list(_all(transcript))
    times = [message.created_at for message in messages if message.created_at is not None]
    return {
        "format": transcript.format,
        "conversation_id": transcript.conversation_id,
        "title": transcript.title,
        "messages": len(messages),
        "main_path": len(transcript.messages),
        "branches": len(transcript.branches),
        "roles": dict(Counter(message.role for message in messages)),
        "summaries": sum(message.kind == "summary" for message in messages),
        "resolved_summaries": len(transcript.boundaries),
        "hidden": sum(message.metadata.get("hidden") is True for message in messages),
        "images": sum(isinstance(part, Image) for message in messages for part in _parts(message)),
        "tools_offered": [tool.name for tool in transcript.tools],
        "calls": dict(Counter(call.name for message in messages for call in message.calls).most_common()),
        "first": min(times, default=None),
        "last": max(times, default=None),
        "tokens": _tokens(transcript, counter),
        "opaque": transcript.opaque_counts,
        "skipped": transcript.skipped,
        "problem_count": transcript.problem_count,
        "problems": [{"place": p.place, "reason": p.reason, "level": p.level} for p in transcript.problems],
        "refused_by": {
            name: [str(violation) for violation in found] for name, found in violations_of(transcript).items()
        },
    }


def _all(transcript: Transcript) -> Iterator[Message]:
    yield from transcript.messages
    for branch in transcript.branches:
        yield from branch.messages


def _parts(message: Message) -> Iterator[Part]:
    yield from message.parts
    for result in message.results:
        yield from result.content


def _tokens(transcript: Transcript, counter: TokenCounter) -> int:
    tools = counter.count_tools(transcript.tools) if transcript.tools else 0
    return counter.request_overhead + tools + sum(map(counter.count_message, transcript.messages))


def _print(documents: list[dict[str, Any]]) -> None:
    for number, document in enumerate(documents, 1):
        name = document["conversation_id"] or document["title"] or ""
        title = f"Conversation {number} {name}".strip() if len(documents) > 1 or name else "Conversation"
        console().print(table(title, ("what", "value"), list(_rows(document))))
        for problem in document["problems"][:SHOWN]:
            note(f"{problem['place']}: {problem['reason']}")
        for family, violations in document["refused_by"].items():
            for violation in violations[:SHOWN]:
                note(f"{CODECS[family].label} refuses {visible(violation)}")


def _rows(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "format", CODECS[document["format"]].label if document["format"] in CODECS else document["format"]
    for name in ("title", "messages", "main_path", "branches", "summaries", "resolved_summaries", "hidden", "images"):
        if document[name] or name in ("messages", "branches"):
            yield name.replace("_", " "), str(document[name])
    for name in ("roles", "calls", "opaque", "skipped"):
        if document[name]:
            yield name, ", ".join(f"{kind} {count}" for kind, count in document[name].items())
    if document["tools_offered"]:
        yield "tools offered", ", ".join(document["tools_offered"])
    if document["first"] is not None:
        yield "time", f"{_moment(document['first'])} to {_moment(document['last'])}"
    yield "tokens", str(document["tokens"])
    yield "problems", str(document["problem_count"])
    for family, violations in document["refused_by"].items():
        yield f"for {CODECS[family].label}", f"refused: {len(violations)} broken rules" if violations else "valid"


def _moment(created_at: int) -> str:
    return moment(Message(id="", role="user", created_at=created_at))
