"""Line for line, the transcript that the agent seed gives its summarizer, and its cut of one that is too long."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parity import javascript
from tests.parity.lines import letta, lines
from turnfold.core.transcript_lines import transcript_lines
from turnfold.core.truncation import LADDER, ladder, middle_cut, utf16_head, utf16_length, utf16_tail
from turnfold.messages.model import Message


def body(messages: tuple[Message, ...], **options: int) -> str:
    """Return the lines between the seed's frame, forged ones left as they are."""
    return "\n".join(line.text for line in transcript_lines(messages, exact=True, **options))


def test_every_transcript_is_the_seeds(vectors: Path) -> None:
    """Roles, texts, calls, images, summaries and cut tool results: no mismatch."""
    mismatches, cases = [], 0
    for number, vector in enumerate(lines(vectors / "transcripts.jsonl"), 1):
        messages = letta(vector["messages"])
        for case in vector["cases"]:
            cases += 1
            options = {"tool_result_chars": case["options"].get("truncationChars", 2_000)}
            if body(messages, **options) != case["body"]:
                mismatches.append((number, case["options"]))
    assert mismatches == []
    assert cases > 100


def test_every_middle_truncation_is_the_seeds(vectors: Path) -> None:
    """The same head, tail and number of dropped characters, or the whole text: no mismatch."""
    mismatches, cases = [], 0
    for number, vector in enumerate(lines(vectors / "middle_truncation.jsonl"), 1):
        cut = middle_cut(vector["text"], vector["max_chars"])
        cases += 1
        ours = {"unchanged": True} if cut is None else {"head": cut.head, "tail": cut.tail, "dropped": cut.dropped}
        if ours != {name: vector[name] for name in ours} or ("unchanged" in vector) != (cut is None):
            mismatches.append(number)
    assert mismatches == []
    assert cases > 50


# -- against slow references, from the rules in words --------------------------------------------------------------------

PIECES = st.lists(
    st.sampled_from(
        ["a", "b ", "中", "é", "😀", "𠮷", "👩‍💻", "\n", "[user] ", '"', "\\", "\ud83d", "\ude00", "\u2028"]
    ),
    max_size=40,
).map("".join)


@given(PIECES, st.integers(-2, 70))
def test_middle_truncation_is_thirty_per_cent_of_each_end(text: str, limit: int) -> None:
    """30 % of the limit from both ends, rounded down, in code units; shorter texts, and no limit, change nothing."""
    length, cut = len(javascript.units(text)), middle_cut(text, limit)
    if limit <= 0 or length <= limit:
        assert cut is None
        return
    kept = int(limit * 0.3)
    assert cut is not None
    assert cut.head == javascript.js_slice(text, 0, kept)
    assert cut.tail == (javascript.js_slice(text, -kept) if kept else "")
    assert cut.dropped == length - 2 * kept


@given(PIECES, st.integers(-1, 70))
def test_what_is_sent_holds_no_half_characters(text: str, units: int) -> None:
    """Heads and tails for a model are the longest that fit and that break no character apart."""
    head, tail = utf16_head(text, units), utf16_tail(text, units)
    whole = [javascript.units(character) for character in text]
    sizes = [len(character) for character in whole]
    starts = [sum(sizes[:count]) for count in range(len(sizes) + 1)]
    fitting = max((count for count, size in enumerate(starts) if size <= max(0, units)), default=0)
    lone = any("\ud800" <= character <= "\udfff" for character in text)
    assert utf16_length(head) <= max(0, units)
    assert utf16_length(tail) <= max(0, units)
    assert utf16_length(text) == starts[-1]
    if not lone:
        assert head == text[:fitting]
        assert text.endswith(tail)
        assert utf16_length(tail) >= min(units - 1, starts[-1])


WHOLE = PIECES.map(lambda text: "".join(c for c in text if not "\ud800" <= c <= "\udfff"))
"""Readers replace halves of characters, which no model can be sent."""

TEXT_PART = st.builds(lambda text: {"type": "text", "text": text}, WHOLE)
IMAGE = st.just({"type": "image", "data": "aGk=", "mimeType": "image/png"})
ARGUMENTS = st.dictionaries(
    st.sampled_from(["cmd", "2", "10", "é", "n"]), st.integers(-9, 9) | WHOLE | st.none(), max_size=3
)
CALL = st.builds(lambda name, args: {"type": "toolCall", "id": "c", "name": name, "arguments": args}, WHOLE, ARGUMENTS)
THOUGHT = st.builds(lambda text: {"type": "thinking", "thinking": text}, WHOLE)
ROWS = st.lists(
    st.one_of(
        st.builds(lambda c: {"role": "user", "content": c}, WHOLE | st.lists(TEXT_PART | IMAGE, max_size=4)),
        st.builds(
            lambda c: {"role": "assistant", "content": c}, st.lists(st.one_of(TEXT_PART, THOUGHT, CALL), max_size=5)
        ),
        st.builds(
            lambda c: {"role": "toolResult", "toolCallId": "c", "toolName": "bash", "isError": False, "content": c},
            st.lists(TEXT_PART | IMAGE, max_size=4),
        ),
        st.builds(lambda s: {"role": "user", "content": "{}", "metadata": {"compaction": {"summary": s}}}, WHOLE),
    ),
    min_size=1,
    max_size=6,
)


def written(value: Any) -> str:
    """Return JSON as JavaScript writes it: array-like keys first, halves of pairs escaped."""
    if isinstance(value, dict):
        numbers = sorted((key for key in value if key.isascii() and key.isdigit()), key=int)
        keys = [*numbers, *(key for key in value if key not in numbers)]
        return "{" + ",".join(f"{written(key)}:{written(value[key])}" for key in keys) + "}"
    if isinstance(value, str):
        return "".join(
            f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else json.dumps(c, ensure_ascii=False)[1:-1]
            for c in f"{value}"
        ).join('""')
    return json.dumps(value)


def reference_line(row: dict[str, Any], limit: int) -> str | None:
    """Return the line of one row by the rules in words: None where it says nothing."""
    if "metadata" in row:
        said = row["metadata"]["compaction"]["summary"]
        return f"[user] {said}" if said else None
    role = {"toolResult": "tool"}.get(row["role"], row["role"])
    content = [{"type": "text", "text": row["content"]}] if isinstance(row["content"], str) else row["content"]
    texts = [str(part.get("text", part.get("thinking"))) for part in content if part["type"] in ("text", "thinking")]
    text = ("\n" if role == "tool" else "\n\n").join(texts)
    images = sum(part["type"] == "image" for part in content)
    if images:
        text += (" " if text else "") + ("[Image omitted]" if images == 1 else f"[{images} images omitted]")
    if role == "tool" and len(javascript.units(text)) > limit:
        cut = len(javascript.units(text)) - limit
        text = javascript.js_slice(text, 0, limit) + f"... [truncated {cut} chars]"
    calls = [f"{part['name']}({written(part['arguments'])})" for part in content if part["type"] == "toolCall"]
    if calls:
        text += (" " if text else "") + "-> " + ", ".join(calls)
    return f"[{role}] {text}" if text else None


def paired(text: str) -> str:
    """Return a text with halves of surrogate pairs that meet made whole, as reading JSON does."""
    return javascript.text(javascript.units(text))


@given(ROWS, st.integers(0, 12))
def test_lines_follow_the_rules_in_words(rows: list[dict[str, Any]], limit: int) -> None:
    """Texts of a message are paragraphs, of a tool lines; images are counted; calls follow the text; results are cut."""
    rows = json.loads(json.dumps(rows))
    named = [{"id": f"m{at}", **row} for at, row in enumerate(rows)]
    expected = [line for row in rows if (line := reference_line(row, limit)) is not None]
    assert paired(body(letta(named), tool_result_chars=limit)) == paired("\n".join(expected))


@pytest.mark.parametrize("length", [0, 1_999, 2_000, 2_001, 60_000, 120_000, 120_001, 10**6])
def test_the_ladder_is_the_seeds_without_steps_that_change_nothing(length: int) -> None:
    """120,000 down to 2,000 characters; a step that would not shorten the transcript is not paid for."""
    steps = [120_000, 90_000, 60_000, 40_000, 25_000, 15_000, 10_000, 6_000, 4_000, 2_000]
    assert list(LADDER) == steps
    assert list(ladder(length)) == [step for step in steps if step < length]
