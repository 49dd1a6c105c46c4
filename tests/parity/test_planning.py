"""Cut for cut, the plans that the agent seed makes: conversations and shapes that letta-code itself has planned."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from turnfold.core.planners import plan_all, plan_parity
from turnfold.errors import PlanningError
from turnfold.messages.canonical import js_json
from turnfold.messages.model import Message, Role, Text, ToolCall, ToolResult, text_message
from turnfold.tokens.chars4 import Chars4Counter
from turnfold.transcripts import decode_one

COUNTER = Chars4Counter()


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file of vectors."""
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


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
        document = js_json({"messages": vector["messages"]}).encode()
        messages = decode_one(document, format_name="letta").messages
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
