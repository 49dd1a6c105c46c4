"""Cut for cut, the plans that the agent seed makes: conversations and shapes that letta-code itself has planned."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parity import javascript
from tests.parity.lines import letta, lines
from turnfold.core.planners import plan_all, plan_parity
from turnfold.errors import PlanningError
from turnfold.messages.model import Message, Role, Text, ToolCall, ToolResult, text_message
from turnfold.tokens.chars4 import Chars4Counter

COUNTER = Chars4Counter()


def seed_plan(messages: tuple[Message, ...], tokens: list[int], options: dict[str, Any]) -> dict[str, Any]:
    """Plan with the options of a case, in the words of a case."""
    percentage = {"percentage": options["slidingWindowPercentage"]} if "slidingWindowPercentage" in options else {}
    try:
        plan = plan_parity(messages, tokens, context_window=options.get("contextWindow"), **percentage)
    except PlanningError as error:
        return {"error": error.reason}
    assert plan.kept_tokens == sum(tokens[plan.cutoff_index :])
    return {"cutoffIndex": plan.cutoff_index}


def test_conversations_are_counted_and_cut_as_the_seed_does(vectors: Path) -> None:
    """Tokens of each message, every sliding-window case and what `all` keeps: no mismatch."""
    mismatches, cases = [], 0
    for number, vector in enumerate(lines(vectors / "planning.jsonl"), 1):
        messages = letta(vector["messages"])
        tokens = [COUNTER.count_message(message) for message in messages]
        if tokens != vector["tokens"]:
            mismatches.append((number, "tokens"))
        for case in vector["sliding_window"]:
            cases += 1
            if seed_plan(messages, tokens, case["options"]) != case["plan"]:
                mismatches.append((number, case))
        kept = [message.id for message in messages[plan_all(messages, tokens).cutoff_index :]]
        if kept != vector["all"]["keep"]:
            mismatches.append((number, f"all {kept}"))
    assert mismatches == []
    assert cases > 100


def shaped(letter: str, characters: int, number: int) -> Message:
    """Return the message that a row of a shape stands for."""
    message_id, text = f"m{number}", "x" * characters
    match letter:
        case "c":
            call = ToolCall(id=f"c{number}", name=text, arguments="{}")
            return Message(id=message_id, role="assistant", parts=(call,))
        case "t":
            result = ToolResult(call_id=f"c{number - 1}", content=(Text(text=text),))
            return Message(id=message_id, role="tool", parts=(result,))
        case _:
            role: Role = "user" if letter == "u" else "assistant"
            return text_message(message_id, role, text)


def test_shapes_are_counted_and_cut_as_the_seed_does(vectors: Path) -> None:
    """Long and odd conversations, given by the lengths of their messages: no mismatch."""
    mismatches, cases = [], 0
    for number, vector in enumerate(lines(vectors / "planning_shapes.jsonl"), 1):
        messages = tuple(shaped(letter, size, at) for at, (letter, size) in enumerate(vector["shape"]))
        tokens = [COUNTER.count_message(message) for message in messages]
        if sum(tokens) != vector["total_tokens"]:
            mismatches.append((number, sum(tokens)))
        for case in vector["sliding_window"]:
            cases += 1
            if seed_plan(messages, tokens, case["options"]) != case["plan"]:
                mismatches.append((number, case))
    assert mismatches == []
    assert cases > 500


@pytest.mark.parametrize(("window", "summarized"), [(1_000, 7), (400, 11)])
def test_the_seeds_own_example(window: int, summarized: int) -> None:
    """Ten turns, 20 messages of 27 tokens: a roomy window summarizes 7, a tight one 11, and a reply opens what is kept."""
    messages = tuple(text_message(f"m{at}", "user" if at % 2 == 0 else "assistant", "x" * 108) for at in range(20))
    tokens = [COUNTER.count_message(message) for message in messages]
    assert set(tokens) == {27}
    plan = plan_parity(messages, tokens, context_window=window)
    assert plan.cutoff_index == summarized
    assert messages[plan.cutoff_index].role == "assistant"


# -- against a slow reference, from the rules in words ---------------------------------------------------------------------


def reference(roles: str, tokens: list[int], window: int | None, percentage: float) -> int | None:
    """Return the cut by the rules of SPEC §5 as they are written, each round looked at anew; None when planning fails.

    Sums and roundings are exact; the eviction alone is added up in binary floating point, as the rule says.
    """
    count = len(roles)
    if count < 4:
        return None
    share = 0.1 if percentage <= 0 else 1.0 if percentage > 1 else percentage
    maximum = count - 2 if roles[-1] == "c" else count - 1
    eviction, found = share, None
    while eviction < 1.0:
        eviction += 0.1
        rounded = math.floor(Fraction(eviction * count) + Fraction(1, 2))
        found = None
        for index in range(1, min(rounded, count - 1) + 1):
            if roles[index] in "ac" and index < maximum:
                found = index
        if found is None:
            continue
        kept = 0
        for size in tokens[found:]:
            kept += size
        if window is None or kept < (1 - share) * window:
            break
    return None if found is None or eviction >= 1.0 else found


SHAPES = st.lists(st.tuples(st.sampled_from("uuaact"), st.integers(0, 400)), max_size=40)
PERCENTAGES = st.sampled_from([-0.5, 0, 0.05, 0.1, 0.2, 0.25, 0.3, 0.5, 0.7, 0.75, 0.8, 0.89, 0.9, 0.95, 1, 1.5, 30])


@given(SHAPES, st.none() | st.integers(-10, 4_000), PERCENTAGES)
def test_any_shape_is_cut_by_the_rules_in_words(
    shape: list[tuple[str, int]], window: int | None, percentage: float
) -> None:
    """Every window and percentage, the odd ones too: the cut, or that there is none."""
    messages = tuple(shaped(letter, size, at) for at, (letter, size) in enumerate(shape))
    tokens = [COUNTER.count_message(message) for message in messages]
    options: dict[str, Any] = {"slidingWindowPercentage": percentage}
    plan = seed_plan(messages, tokens, options if window is None else {**options, "contextWindow": window})
    assert plan.get("cutoffIndex") == reference("".join(letter for letter, _ in shape), tokens, window, percentage)


@given(st.text(), st.integers(0, 3))
def test_tokens_are_a_quarter_of_the_code_units_rounded_up(text: str, images: int) -> None:
    """Four UTF-16 code units a token, rounded up once a message; 1,200 tokens an image (SPEC §3)."""
    rows = [{"type": "text", "text": text}] + [{"type": "image", "data": "aGk=", "mimeType": "image/png"}] * images
    (message,) = letta([{"id": "m1", "role": "user", "content": rows, "timestamp": 1}])
    assert COUNTER.count_message(message) == math.ceil(len(javascript.units(text)) / 4) + 1_200 * images
