"""What must be true of every prepared request and every store, judged by a product that knows all that it ever said.

Each text that the product writes carries a stamp, `#17#`, used once: an edited message gets a new one. The product's summarizer
writes down which stamps it was shown, so a summary says exactly what it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from turnfold.core.checkpoint import CheckpointRecord
from turnfold.core.groups import pair_tools
from turnfold.core.plan import SummaryDraft, SummaryRequest
from turnfold.messages.model import Message, Text, ToolResult
from turnfold.ports import TokenCounter
from turnfold.runtime.decision import Prepared
from turnfold.runtime.requests import CompactRequest

STAMP = re.compile(r"#(\d+)#")
SUMMARY = re.compile(r"\[(\w+)\|([\d,-]*)\]")


def stamp_of(message: Message) -> int:
    """Return the stamp in a message's first text, tool results included; 0 for none."""
    for part in message.parts:
        texts = part.content if isinstance(part, ToolResult) else (part,)
        for text in texts:
            if isinstance(text, Text) and (found := STAMP.search(text.text)):
                return int(found[1])
    return 0


def told(text: str) -> tuple[str, frozenset[int]]:
    """Return the role and the stamps that a summary names."""
    found = SUMMARY.search(text)
    assert found, f"not one of our summaries: {text!r}"
    spans = (span.split("-") for span in found[2].split(",") if span)
    return found[1], frozenset(number for span in spans for number in range(int(span[0]), int(span[-1]) + 1))


def write_summary(request: SummaryRequest, role: str) -> SummaryDraft:
    """Return a summary that names every stamp of the previous summary and of the material."""
    stamps = {stamp_of(message) for message in request.messages} - {0}
    if request.previous_summary:
        previous_role, previous = told(request.previous_summary)
        role = role if previous_role == role else f"mixed_{previous_role}_{role}"
        stamps |= previous
    return SummaryDraft(text=f"[{role}|{','.join(_spans(sorted(stamps)))}]")


def _spans(numbers: Sequence[int]) -> Iterator[str]:
    start = previous = None
    for number in [*numbers, None]:
        if previous is not None and number != previous + 1:
            yield f"{start}-{previous}" if start != previous else f"{start}"
            start = None
        start, previous = (number if start is None else start), number


class Truth(msgspec.Struct, kw_only=True):
    """What the product knows: where each stamp stood in the conversation, and which are still said."""

    places: dict[int, int]
    alive: frozenset[int]


def problems(request: CompactRequest, prepared: Prepared, truth: Truth, counter: TokenCounter) -> list[str]:
    """Return everything that is wrong with a prepared request; empty when all promises are kept."""
    return [
        *_size_problems(prepared, counter),
        *_frame_problems(request, prepared),
        *_shape_problems(prepared),
        *_history_problems(request, prepared),
        *_summary_problems(request, prepared, truth),
    ]


def _size_problems(prepared: Prepared, counter: TokenCounter) -> Iterator[str]:
    recount = counter.request_overhead + sum(map(counter.count_message, prepared.messages))
    if prepared.tokens != recount:
        yield f"{prepared.tokens} tokens are told, {recount} are sent"
    if recount > prepared.budget.input_budget:
        yield f"{recount} tokens exceed the budget of {prepared.budget.input_budget}"


def _frame_problems(request: CompactRequest, prepared: Prepared) -> Iterator[str]:
    fixed, incoming = texts(request.fixed_prompt), texts(request.incoming)
    sent = texts(prepared.messages)
    if sent[: len(fixed)] != fixed:
        yield "the fixed prompt is not sent as it is"
    if incoming and sent[-len(incoming) :] != incoming:
        yield "the incoming turn is not sent as it is"


def _shape_problems(prepared: Prepared) -> Iterator[str]:
    pairs = pair_tools(prepared.messages)
    if pairs.orphan_results or pairs.unanswered:
        yield f"tool calls and results do not match: {pairs}"


def _history_problems(request: CompactRequest, prepared: Prepared) -> Iterator[str]:
    shown = shown_stamps(request, prepared)
    carried = [stamp_of(message) for message in request.history]
    if carried[len(carried) - len(shown) :] != shown:
        yield f"what is shown, {shown}, is not the end of what is carried, {carried}"
    covered = summary_of(prepared)
    missing = set(carried) - set(shown) - covered
    if missing and prepared.outcome != "trimmed":
        yield f"{sorted(missing)} are neither shown nor in the summary, and nobody says so"
    if twice := set(shown) & covered:
        yield f"{sorted(twice)} are both shown and in the summary"
    if covered & {stamp_of(message) for message in request.incoming}:
        yield "the incoming turn is in the summary"


def _summary_problems(request: CompactRequest, prepared: Prepared, truth: Truth) -> Iterator[str]:
    covered = summary_of(prepared)
    if not covered:
        return
    role, _ = told(summary_text(prepared))
    if role != request.role_id:
        yield f"the summary is of {role}, the request of {request.role_id}"
    carried = {truth.places[stamp_of(message)]: stamp_of(message) for message in request.history}
    known = [place for place, stamp in carried.items() if stamp in covered]
    for stamp in covered - truth.alive:
        place = truth.places[stamp]
        if place in carried or any(other < place for other in known):
            yield f"the summary covers #{stamp}#, which is no longer said, as the request shows"


def texts(messages: Iterable[Message]) -> list[str]:
    """Return the texts of messages."""
    return [message.text for message in messages]


def shown_stamps(request: CompactRequest, prepared: Prepared) -> list[int]:
    """Return the stamps of the history's messages in view, in order."""
    own = {stamp_of(message) for message in request.incoming}
    stamps = [stamp_of(message) for message in prepared.messages if message.kind == "message"]
    return [stamp for stamp in stamps if stamp and stamp not in own]


def summary_text(prepared: Prepared) -> str:
    """Return the text of the summary in view, empty for none."""
    return next((message.text for message in prepared.messages if message.kind == "summary"), "")


def summary_of(prepared: Prepared) -> frozenset[int]:
    """Return the stamps that the summary in view names."""
    text = summary_text(prepared)
    return told(text)[1] if text else frozenset()


def record_problems(
    before: Sequence[CheckpointRecord], after: Sequence[CheckpointRecord], results: Sequence[Prepared]
) -> list[str]:
    """Return what is wrong with a key's versions (oldest first) after some requests that ran at the same time."""
    found = []
    for old, new in zip(before, after, strict=False):
        if old.checkpoint != new.checkpoint:
            found.append(f"version {old.version} was overwritten")
        if old.invalidated is not None and new.invalidated != old.invalidated:
            found.append(f"version {old.version} was marked {old.invalidated!r} and is no longer")
    if [record.version for record in after] != list(range(1, len(after) + 1)):
        found.append("versions do not count up from 1")
    fresh = {record.version: record.checkpoint for record in after[len(before) :]}
    for prepared in results:
        stored = fresh.get(prepared.version or 0)
        if prepared.persistence == "saved" and (stored is None or stored.summary != prepared.summary):
            found.append(f"version {prepared.version} is told as saved, and is not")
    certain = sum(prepared.persistence == "saved" for prepared in results)
    possible = certain + sum(prepared.persistence == "unknown" for prepared in results)
    if not certain <= len(fresh) <= possible:
        found.append(f"{len(fresh)} versions were made, {certain} to {possible} are told")
    return found
