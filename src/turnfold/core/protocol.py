"""What a summarizer is sent: the material of each input protocol, cut to a size or into segments (SPEC §6).

The material stands between marker lines that carry the request's frame, an unguessable word, and no content holds it. The
user's new line is always in the material, marked as not yet happened. How to ask is the prompts' business; what may come back is
`protocol_answers`'.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, assert_never

import msgspec

from turnfold.core.envelope import raw_summary
from turnfold.core.excerpt import CUT, Excerpt, excerpt, joined
from turnfold.core.plan import Mode, SummaryRequest
from turnfold.core.transcript_lines import Line, clip, escape_role_lines, transcript_lines
from turnfold.messages.canonical import js_json
from turnfold.messages.model import Message

WORD_LIMITS: dict[Mode, int] = {"sliding_window": 300, "all": 500, "bounded_recent": 300, "mask": 300}
"""Words that the prompt allows (SPEC §6)."""

DEFAULT_SEGMENT_TOKENS = 4_000
CURRENT_INPUT_CHARS = 4_000
"""Characters of the user's new line that are shown; it is there to tell what matters, and may be a pasted book."""

NOT_YET = "has not happened yet"


def word_limit(mode: Mode, max_tokens: int) -> int:
    """Return how many words to ask for: the mode's limit, or what `max_tokens` hold where that is less."""
    return max(20, min(WORD_LIMITS[mode], math.floor(max_tokens * 0.6)))


def lines_to_show(request: SummaryRequest) -> tuple[Line, ...]:
    """Return the role lines of what leaves the context, without the frame and without a second copy of the old summary."""
    messages = (message for message in request.messages if not _repeats_summary(message, request))
    lines = transcript_lines(messages, tool_result_chars=request.tool_result_chars)
    return tuple(_without_frame(line, request.frame) for line in lines)


def _repeats_summary(message: Message, request: SummaryRequest) -> bool:
    return request.previous_summary is not None and raw_summary(message) == request.previous_summary


def _without_frame(line: Line, frame: str) -> Line:
    return msgspec.structs.replace(line, body=_harmless(line.body, frame)) if frame and frame in line.body else line


def _harmless(text: str, frame: str) -> str:
    """Content that holds the frame's word loses it; only chance or a leak could have put it there."""
    return text.replace(frame, "[…]") if frame else text


def _section_text(text: str, frame: str) -> str:
    return escape_role_lines("\n" + _harmless(text, frame))[1:]


def material(request: SummaryRequest, shown: Excerpt, *, previous_summary: str | None = None) -> str:
    """Return the material for one call: `shown` is what it shows of the conversation, `previous_summary` the summary so far."""
    match request.input_protocol:
        case "harness_json_v1":
            return _between(request.frame, "document", js_json(_document(request, shown, previous_summary)))
        case "transcript":
            return "\n".join(_marked(request, shown, previous_summary))
        case "dream_text_v0" | "automemory_recursive_v1":
            return _between(request.frame, "record", "\n".join(_labelled(request, shown, previous_summary)))
        case _ as never:
            assert_never(never)


def _between(frame: str, name: str, text: str) -> str:
    return f"<<<{frame} {name}>>>\n{text}\n<<<{frame} end of {name}>>>"


def _marked(request: SummaryRequest, shown: Excerpt, previous_summary: str | None) -> Iterator[str]:
    if previous_summary:
        yield _between(request.frame, "previous summary", _section_text(previous_summary, request.frame))
    yield _between(request.frame, "transcript", shown.text)
    if request.current_input:
        text = _section_text(_shortened(request.current_input), request.frame)
        yield _between(request.frame, f"current input, {NOT_YET}", text)


def _labelled(request: SummaryRequest, shown: Excerpt, previous_summary: str | None) -> Iterator[str]:
    mark = f"<<<{request.frame}"
    yield f"{mark} Summary so far:>>>"
    yield _section_text(previous_summary, request.frame) if previous_summary else "(none)"
    yield f"{mark} Conversation:>>>"
    yield shown.text
    if request.current_input:
        yield f"{mark} Current input ({NOT_YET}):>>>"
        yield _section_text(_shortened(request.current_input), request.frame)


def _shortened(current_input: str) -> str:
    return clip(current_input, CURRENT_INPUT_CHARS)


def _document(request: SummaryRequest, shown: Excerpt, previous_summary: str | None) -> dict[str, Any]:
    document: dict[str, Any] = {
        "protocol": "harness_json_v1",
        "previous_summary": _harmless(previous_summary, request.frame) if previous_summary else None,
        "groups": _groups(request, shown),
        "limits": {"max_tokens": request.max_tokens, "max_characters": request.max_chars},
    }
    if shown.dropped:
        document["not_shown_characters"] = shown.dropped
    if request.current_input:
        text = _harmless(_shortened(request.current_input), request.frame)
        document["current_input"] = {"status": NOT_YET.replace(" ", "_"), "text": text}
    return document


def _groups(request: SummaryRequest, shown: Excerpt) -> list[dict[str, Any]]:
    """Lines by closed group, in order; lines outside every group stand in groups of their own."""
    number = {
        message.id: index
        for index, (start, end) in enumerate(request.groups, 1)
        for message in request.messages[start:end]
    }
    return [
        {"id": f"g{group}" if group else "open", "messages": [_entry(line) for line in lines]}
        for group, lines in groupby(shown.lines, key=lambda line: number.get(line.message_id, 0))
    ]


def _entry(line: Line) -> dict[str, str]:
    return {"id": line.message_id, "role": line.role, "text": line.body}


# -- segments ----------------------------------------------------------------------------------------------------


def segments(lines: Sequence[Line], max_tokens: int, count_text: Callable[[str], int]) -> tuple[tuple[Line, ...], ...]:
    """Return the lines in runs of at most `max_tokens` tokens each; a longer line is cut into parts that name its speaker.

    Nothing is lost: what `automemory_recursive_v1` folds is the whole conversation.
    """
    found: list[tuple[Line, ...]] = []
    run: list[Line] = []
    used = 0
    for line in _parts(lines, max_tokens, count_text):
        tokens = count_text(line.text) + 1  # its line end
        if run and used + tokens > max_tokens:
            found.append(tuple(run))
            run, used = [], 0
        run.append(line)
        used += tokens
    return (*found, tuple(run)) if run else tuple(found)


def _parts(lines: Sequence[Line], max_tokens: int, count_text: Callable[[str], int]) -> Iterator[Line]:
    for line in lines:
        rest = line
        while count_text(rest.text) + 1 > max_tokens:
            at = _longest_part(rest, max_tokens, count_text)
            if at >= len(rest.body):
                break
            yield msgspec.structs.replace(rest, body=rest.body[:at])
            rest = msgspec.structs.replace(rest, body=f"{CUT} {rest.body[at:]}")
        yield rest


def _longest_part(line: Line, max_tokens: int, count_text: Callable[[str], int]) -> int:
    """Return how many characters of a line's body fit; always enough to make progress."""
    least = len(CUT) + 2
    low, high = least, max(least, min(len(line.body), max_tokens * 16))
    while low < high:
        middle = (low + high + 1) // 2
        if count_text(msgspec.structs.replace(line, body=line.body[:middle]).text) + 1 <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return low


def segment_excerpts(request: SummaryRequest, count_text: Callable[[str], int]) -> tuple[Excerpt, ...]:
    """Return what each call of a request is shown: the segments of a recursive protocol, else everything at once."""
    lines = lines_to_show(request)
    if request.input_protocol != "automemory_recursive_v1":
        return (excerpt(lines),)
    limit = request.segment_content_tokens or DEFAULT_SEGMENT_TOKENS
    return tuple(Excerpt(head=run) for run in segments(lines, limit, count_text)) or (Excerpt(head=()),)


def whole_text(request: SummaryRequest) -> str:
    """Return the whole transcript as text, for telling an echo from a summary."""
    return joined(lines_to_show(request))
