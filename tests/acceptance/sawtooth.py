"""The agent seed's small window, turn by turn: how often it is compacted, and what a request holds each time."""

from __future__ import annotations

from itertools import count

import msgspec

from turnfold.core.budget import Budget
from turnfold.core.policy import Policy
from turnfold.messages.log import ConversationKey
from turnfold.messages.model import Message, text_message
from turnfold.runtime.compactor import Compactor
from turnfold.runtime.decision import Prepared
from turnfold.session import Session
from turnfold.stores.memory import MemoryStore
from turnfold.summarizers.extractive import ExtractiveSummarizer
from turnfold.summarizers.scripted import first_characters
from turnfold.tokens.chars4 import Chars4Counter
from turnfold.wiring import SystemClock

BUDGET = Budget(context_window=1_200)
"""No output reserve, no margin: it triggers above 960 tokens."""

FLOOR = 524
MESSAGE_UNITS = 108
"""27 tokens a message, 54 a turn."""

MODES = {
    "parity": Policy(floor_aware=False, mask_tool_results=False, max_summary_tokens=93),
    "default": Policy(max_summary_tokens=93),
}


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn: what was prepared for it, and the two turns before it."""

    number: int
    prepared: Prepared
    last_turns: tuple[Message, ...]
    incoming: Message


async def play(turns: int, policy: Policy, *, message_units: int = MESSAGE_UNITS) -> tuple[Turn, ...]:
    """Play a conversation of `turns` turns with the seed's mock summarizer and return every turn."""
    counter, numbers = Chars4Counter(), count(1)
    compactor = Compactor(
        counter=counter,
        summarizer=first_characters(12),
        fallback=ExtractiveSummarizer(counter.count_text),
        policy=policy,
        clock=SystemClock(),
        new_frame=lambda: "frame",
    )
    played: list[Turn] = []
    said: list[Message] = []
    key = ConversationKey(conversation_id="sawtooth")
    system = "You are an assistant with tools. ".ljust(4 * FLOOR, "#")
    async with Session(
        MemoryStore(), key, compactor, budget=BUDGET, new_id=lambda: f"id{next(numbers)}", system=system
    ) as session:
        for number in range(1, turns + 1):
            topic = "我们的数据库端口是 5433，别用默认的 5432。" if number == 1 else f"第 {number} 个无关话题："
            question = text_message(f"u{number}", "user", topic.ljust(message_units, "。"))
            await session.append(question)
            prepared = await session.prepare()
            played.append(Turn(number=number, prepared=prepared, last_turns=tuple(said[-4:]), incoming=question))
            answer = text_message(
                f"a{number}", "assistant", f"好的，第 {number} 个话题聊到这里。".ljust(message_units, "。")
            )
            await session.append(answer)
            said += [question, answer]
    return tuple(played)


def compactions(played: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Return the turns before which the conversation was compacted."""
    return tuple(turn for turn in played if turn.prepared.outcome == "compacted")


def row(name: str, played: tuple[Turn, ...]) -> str:
    """Return a row of the table in docs/sawtooth.md."""
    done = compactions(played)
    kept = sorted({turn.prepared.messages_after for turn in done})
    at = ", ".join(str(turn.number) for turn in done)
    largest = max(turn.prepared.tokens for turn in played)
    between = f"{kept[0]}" if len(kept) == 1 else f"{kept[0]} to {kept[-1]}"
    return f"| {len(played)} | {name} | {len(done)} | {at} | {between} | {largest} |"
