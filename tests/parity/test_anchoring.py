"""The context estimate is the agent seed's: the newest usage that means something, and our counts of what came after it."""

import json
from pathlib import Path

from turnfold.core.anchoring import anchored_estimate
from turnfold.messages.canonical import js_json
from turnfold.tokens.chars4 import Chars4Counter
from turnfold.transcripts import decode_one


def test_every_estimate_equals_the_seeds(vectors: Path) -> None:
    """Total, reported part, trailing part and the index of the usage: no mismatch."""
    counter, mismatches, count = Chars4Counter(), [], 0
    for line in (vectors / "planning.jsonl").read_text("utf-8").strip().split("\n"):
        vector = json.loads(line)
        messages = decode_one(js_json({"messages": vector["messages"]}).encode(), format_name="letta").messages
        found = anchored_estimate(messages, [counter.count_message(message) for message in messages])
        ours = {
            "tokens": found.tokens,
            "usageTokens": found.usage_tokens,
            "trailingTokens": found.trailing_tokens,
            "lastUsageIndex": found.last_usage_index,
        }
        count += 1
        if ours != vector["context"]:
            mismatches.append((count, ours, vector["context"]))
    assert mismatches == []
    assert count > 50
