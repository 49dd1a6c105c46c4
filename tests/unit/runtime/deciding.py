"""Compactors and situations for tests: short to write, with a counter that is easy to foresee."""

from collections.abc import Sequence

from tests.rough_counter import RoughCounter
from turnfold.core.budget import Budget
from turnfold.core.checkpoint import NextCheckpoint
from turnfold.core.plan import SummaryDraft, Trigger
from turnfold.core.policy import Policy
from turnfold.core.situation import Situation
from turnfold.messages.model import Message, Text, ToolCall, ToolResult, text_message
from turnfold.ports import Summarizer, TokenCounter
from turnfold.runtime.compactor import Compactor
from turnfold.runtime.decision import Decision
from turnfold.runtime.meter import Meter
from turnfold.summarizers.extractive import ExtractiveSummarizer
from turnfold.summarizers.scripted import ScriptedSummarizer
from turnfold.wiring import SystemClock

UPCOMING = NextCheckpoint(version=1, summary_id="s1", fingerprint="f", created_at=1_700_000_000_000)


def brief(text: str = "They talked about the build, and it was fixed.") -> ScriptedSummarizer:
    """Return a summarizer that is paid and always says the same."""
    return ScriptedSummarizer(lambda _: SummaryDraft(text=text))


def make_compactor(
    summarizer: Summarizer, policy: Policy | None = None, *, counter: TokenCounter | None = None
) -> Compactor:
    """Return a compactor with `extractive` as its fallback and a frame that does not change."""
    used = counter or RoughCounter()
    return Compactor(
        counter=used,
        summarizer=summarizer,
        fallback=ExtractiveSummarizer(used.count_text),
        policy=policy or Policy(),
        clock=SystemClock(),
        new_frame=lambda: "frame",
    )


async def decided(
    compactor: Compactor,
    situation: Situation,
    budget: Budget,
    *,
    trigger: Trigger | None = None,
    may_call: bool = True,
    upcoming: NextCheckpoint = UPCOMING,
) -> Decision:
    """Return what the compactor decides."""

    async def allowed(_: Trigger) -> bool:
        return may_call

    return await compactor.decide(
        situation, budget, meter=Meter(compactor.counter), upcoming=upcoming, trigger=trigger, may_call=allowed
    )


def turns(count: int, *, characters: int = 200, first: int = 1) -> tuple[Message, ...]:
    """Return `count` turns of a question and its answer, `characters` characters each, ids `u<n>` and `a<n>`."""
    rows: list[Message] = []
    for number in range(first, first + count):
        for role, prefix in (("user", "u"), ("assistant", "a")):
            text = f"Line {prefix}{number} says something of its own. ".ljust(characters, "x")
            rows.append(text_message(f"{prefix}{number}", role, text))  # type: ignore[arg-type]
    return tuple(rows)


def steps(count: int, *, characters: int = 400, first: int = 1) -> tuple[Message, ...]:
    """Return `count` steps of an agent: a call `c<n>` in message `s<n>`, its result of `characters` in message `r<n>`."""
    rows: list[Message] = []
    for number in range(first, first + count):
        call = ToolCall(id=f"c{number}", name="bash", arguments=f'{{"cmd":"step {number}"}}')
        result = ToolResult(call_id=call.id, content=(Text(text=f"output {number} ".ljust(characters, "y")),))
        rows.append(Message(id=f"s{number}", role="assistant", parts=(call,)))
        rows.append(Message(id=f"r{number}", role="tool", parts=(result,)))
    return tuple(rows)


def ids(messages: Sequence[Message]) -> list[str]:
    """Return the messages' ids."""
    return [message.id for message in messages]
