"""The context estimate is the agent seed's: the newest usage that means something, and our counts of what came after it."""

from pathlib import Path

from tests.parity.lines import letta, lines
from turnfold.core.anchoring import anchored_estimate
from turnfold.tokens.chars4 import Chars4Counter


def test_every_estimate_equals_the_seeds(vectors: Path) -> None:
    """Total, reported part, trailing part and the index of the usage: no mismatch."""
    counter, mismatches, count = Chars4Counter(), [], 0
    for vector in lines(vectors / "planning.jsonl"):
        messages = letta(vector["messages"])
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
