"""An agent's turn of many steps whose tools talk a lot, with and without masking."""

from __future__ import annotations

from itertools import count

import msgspec

from turnfold.core.budget import session_budget
from turnfold.core.plan import SummaryDraft
from turnfold.core.policy import Policy
from turnfold.messages.log import ConversationKey
from turnfold.messages.model import Message, Text, ToolCall, ToolResult, text_message
from turnfold.runtime.compactor import Compactor
from turnfold.runtime.decision import Prepared
from turnfold.session import Session
from turnfold.stores.memory import MemoryStore
from turnfold.summarizers.extractive import ExtractiveSummarizer
from turnfold.summarizers.scripted import ScriptedSummarizer
from turnfold.tokens import make_counter
from turnfold.wiring import SystemClock

WINDOWS = (8_000, 32_000)
STEPS = 200
REQUEST = "Find out why the nightly build fails, fix it, and keep the public API as it is."
SAID = (
    "I look at the next module of the build, since the one before gave no sign of the failure; its imports come first."
)
LINE = "src/build/stage_{0}/module_{1}.py:{2}: checked, no difference to the cached artefact\n"


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn of many steps took. `first_masks` are the compactions by masks before the first summary."""

    window: int
    masking: bool
    by_masks: int
    by_summary: int
    first_masks: int
    calls: int
    largest: int
    tool_share: float
    ends: tuple[Prepared, ...]


def step(number: int) -> tuple[Message, Message]:
    """Return one step: a call with a few words, and its long result."""
    call = ToolCall(id=f"c{number}", name="check", arguments=f'{{"stage":{number}}}')
    output = "".join(LINE.format(number, line, line * 7) for line in range(8))
    result = ToolResult(call_id=call.id, content=(Text(text=output),))
    return (
        Message(id=f"s{number}", role="assistant", parts=(Text(text=SAID), call)),
        Message(id=f"r{number}", role="tool", parts=(result,)),
    )


async def run(window: int, *, masking: bool) -> Run:
    """Play the turn with a paid summarizer that uses its whole allowance."""
    counter, numbers = make_counter("bpe"), count(1)
    paid = ScriptedSummarizer(lambda request: SummaryDraft(text="The stage was checked. " * (request.max_tokens // 4)))
    compactor = Compactor(
        counter=counter,
        summarizer=paid,
        fallback=ExtractiveSummarizer(counter.count_text),
        policy=Policy(mask_tool_results=masking),
        clock=SystemClock(),
        new_frame=lambda: "frame",
    )
    prepared: list[Prepared] = []
    said = tools = 0
    async with Session(
        MemoryStore(),
        ConversationKey(conversation_id="heavy"),
        compactor,
        budget=session_budget(window, exact=True),
        new_id=lambda: f"id{next(numbers)}",
        system="You repair builds.",
    ) as session:
        await session.append(text_message("request", "user", REQUEST))
        for number in range(1, STEPS + 1):
            prepared.append(await session.prepare())
            call, result = step(number)
            await session.append(call, result)
            said += counter.count_message(call)
            tools += counter.count_message(result)
        prepared.append(await session.prepare())
    modes = [each.plan.mode for each in prepared if each.outcome == "compacted" and each.plan]
    return Run(
        window=window,
        masking=masking,
        by_masks=modes.count("mask"),
        by_summary=len(modes) - modes.count("mask"),
        first_masks=next((at for at, mode in enumerate(modes) if mode != "mask"), len(modes)),
        calls=sum(each.calls for each in prepared),
        largest=max(each.tokens for each in prepared),
        tool_share=tools / (said + tools),
        ends=tuple(prepared),
    )


def row(found: Run) -> str:
    """Return a row of the table in docs/masking.md."""
    masking = "yes" if found.masking else "no"
    return (
        f"| {found.window:,} | {masking} | {found.by_masks} | {found.by_summary} | {found.calls} | {found.largest:,} |"
    )
