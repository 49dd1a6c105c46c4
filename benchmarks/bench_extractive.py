"""The extractive summary: what it keeps of dialogues, instructions and identifiers, and how its time grows with the text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.fidelity import (
    DATA,
    Locomo,
    facts_kept,
    identifiers_kept,
    instructions_found,
    messages_of,
    rows_of,
    summary_of,
    taken_for_instructions,
    tokens_of,
)
from benchmarks.measuring import Row, digits, in_turns, ratio_row, skipped
from turnfold.messages.model import Message

ROUNDS = 7
SHARES = {0.1: 0.36, 0.2: 0.58}
"""Shares of a dialogue's tokens, and how much of its facts a summary of that size keeps at least."""


def rows() -> list[Row]:
    """All figures; LoCoMo's only where its data is."""
    return [*dialogues(), *lists(), *speed(messages_of(DATA / "dialogue_zh.json"), "Chinese")]


def dialogues() -> list[Row]:
    """Facts kept of whole dialogues."""
    found = [
        kept(f"planted facts of `{name}` at {share:.0%}", facts_kept(name, share), bound)
        for name in ("dialogue_zh", "roleplay_zh")
        for share, bound in SHARES.items()
    ]
    if not Locomo.present():
        return [*found, skipped("LoCoMo's answers", "its data is not beside this checkout")]
    with TemporaryDirectory() as folder:
        locomo = Locomo(Path(folder))
        for share, bound in SHARES.items():
            found.append(kept(f"LoCoMo's answers, `ans_all` at {share:.0%}", locomo.answers_kept(share), bound))
        return [*found, *speed(locomo.dialogues["conv-41"], "English")]


def lists() -> list[Row]:
    """Instructions, ordinary sentences and identifiers."""
    first, second = rows_of("standing_instructions.jsonl"), rows_of("standing_instructions_second.jsonl")
    held_out = [row for row in second if row["held_out"]]
    ordinary = rows_of("ordinary_sentences.jsonl") + rows_of("ordinary_sentences_second.jsonl")
    wrong = taken_for_instructions(ordinary)
    return [
        kept(f"{len(first)} standing instructions found", instructions_found(first), 0.95),
        kept(f"{len(second)} more", instructions_found(second), 0.95),
        kept(f"of these, {len(held_out)} that no rule was written by", instructions_found(held_out), 0.9),
        Row(
            f"{len(ordinary)} ordinary sentences taken for one",
            f"{wrong:.3f}",
            bound="at most 0.05",
            holds=wrong <= 0.05,
        ),
        kept("220 identifiers in the summary or its hints", identifiers_kept(rows_of("identifiers.jsonl")), 0.95),
    ]


def kept(what: str, share: float, least: float) -> Row:
    """A share that is to be large."""
    return Row(what, f"{share:.3f}", bound=f"at least {least:g}", holds=share >= least)


def speed(messages: Sequence[Message], language: str) -> list[Row]:
    """Time of a dialogue against that of its half, and for 20,000 tokens."""
    half = messages[: len(messages) // 2]
    whole, part = in_turns(ROUNDS, lambda: summary_of(messages, 0.2), lambda: summary_of(half, 0.2))
    scale = 20_000 / tokens_of(messages)
    return [
        ratio_row(f"{language} dialogue of {tokens_of(messages):,} tokens", whole, "its first half", part, bound=2.6),
        Row(f"the same, for 20,000 tokens ({language})", f"{digits(min(whole) * scale * 1e3)} ms at best"),
    ]


if __name__ == "__main__":
    from benchmarks.measuring import main

    main(rows)
