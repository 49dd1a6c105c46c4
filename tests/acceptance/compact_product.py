"""A small chat product around the Compact runtime, for acceptance tests: what it says, and how it is equipped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

import msgspec

from turnfold.core.policy import Policy
from turnfold.messages.model import Message, text_message
from turnfold.ports import Clock, Summarizer, TokenCounter
from turnfold.runtime.compact_runtime import CompactOptions, CompactRuntime, CompactStore
from turnfold.runtime.compactor import Compactor
from turnfold.summarizers.extractive import ExtractiveSummarizer
from turnfold.tokens import make_counter

SEED_OPTIONS = CompactOptions(
    scenario="rp",
    context_window=8_192,
    output_reserve=2_048,
    safety_margin=512,
    trigger_ratio=0.8,
    mutation_timeout_ms=5_000,
)
"""The roleplay seed's arithmetic: an input budget of 5,632 tokens and a trigger line of 4,505."""

SEED_POLICY = Policy(
    planner="bounded_recent",
    mask_tool_results=False,
    keep_last_groups=2,
    max_summary_tokens=700,
    input_protocol="dream_text_v0",
    output_format="plain_text",
    length_policy="accept_bounded",
    min_generation_tokens=256,
    max_candidate_attempts=24,
    max_model_calls=2,
    max_compaction_ms=120_000,
    summary_form="plain",
    fallback_on_failure=False,
)
"""The seed's configuration block."""


def seed_runtime(
    store: CompactStore,
    summarizer: Summarizer,
    clock: Clock,
    *,
    policy: Policy = SEED_POLICY,
    options: CompactOptions = SEED_OPTIONS,
    counter: TokenCounter | None = None,
) -> CompactRuntime:
    """Return a runtime with the seed's configuration, exact counts and ids that count up."""
    counter = counter or make_counter("o200k_base")
    compactor = Compactor(
        counter=counter,
        summarizer=summarizer,
        fallback=ExtractiveSummarizer(counter.count_text),
        policy=policy,
        clock=clock,
        new_frame=lambda: "a-frame-nobody-guesses",
    )
    return CompactRuntime(store, compactor, options, new_id=numbers())


def numbers() -> Callable[[], str]:
    """Return a source of ids: 1, 2, 3..."""
    source = count(1)
    return lambda: str(next(source))


def turn(number: int, tokens: int, *, words: str = "harbor lantern winter") -> tuple[Message, Message]:
    """Return a user's line and the answer, about `tokens` tokens together; ids `u1`, `a1`, `u2`..."""
    said = f"Turn {number}. " + _filler(words, tokens // 4)
    answered = f"Answer {number}. " + _filler(words, tokens - tokens // 4)
    return text_message(f"u{number}", "user", said), text_message(f"a{number}", "assistant", answered)


def turns(first: int, last: int, tokens: int) -> tuple[Message, ...]:
    """Return turns `first` to `last`, both included."""
    return tuple(message for number in range(first, last + 1) for message in turn(number, tokens))


def _filler(words: str, tokens: int) -> str:
    chosen = words.split()
    return " ".join(chosen[index % len(chosen)] for index in range(max(1, tokens - 8))) + "."


def replaced(history: Sequence[Message], message_id: str, text: str) -> tuple[Message, ...]:
    """Return the history with one message saying something else."""
    changed = text_message(message_id, "user", text).parts
    return tuple(msgspec.structs.replace(m, parts=changed) if m.id == message_id else m for m in history)


def without(history: Sequence[Message], *message_ids: str) -> tuple[Message, ...]:
    """Return the history with some messages deleted."""
    return tuple(message for message in history if message.id not in message_ids)
