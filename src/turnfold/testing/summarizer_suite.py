"""The contract of the Summarizer port, as tests: subclass the suite, say how to make one, and pytest runs it.

Needs pytest with pytest-asyncio in auto mode.
"""

from __future__ import annotations

from typing import get_args

import pytest

from turnfold.core.limits import CallBudget
from turnfold.core.plan import InputProtocol, Mode, SummaryRequest
from turnfold.errors import SummaryLimitError
from turnfold.messages.model import Message, Text, ToolCall, ToolResult, text_message
from turnfold.ports import Summarizer

ENGLISH = (
    text_message("m1", "user", "The build fails: src/app/main.py line 42 raises KeyError. Please fix it, see PR #128."),
    Message(
        id="m2",
        role="assistant",
        parts=(Text(text="I will look."), ToolCall(id="c1", name="read_file", arguments='{"path":"src/app/main.py"}')),
    ),
    Message(id="m3", role="tool", parts=(ToolResult(call_id="c1", content=(Text(text="value = table[key]"),)),)),
    text_message(
        "m4", "assistant", "Fixed src/app/main.py: the key is now looked up with a default. The build passes."
    ),
    text_message("m5", "user", "Good. From now on never push to main without asking me first."),
    text_message("m6", "assistant", "Understood: I will ask before every push to main."),
)
CHINESE = (
    text_message("m1", "user", "莉娅，借我那把铜钥匙，我天黑前一定归还。"),
    text_message("m2", "assistant", "莉娅把铜钥匙放进你手里：「天黑前，城门口见。」"),
    text_message("m3", "user", "我去城门看看守卫换班的时间。"),
    text_message("m4", "assistant", "守卫在酉时换班，城门会空出一盏茶的工夫。"),
)
FRAME = "unguessable7f3a9c"


def request_for(
    messages: tuple[Message, ...] = ENGLISH, mode: Mode = "sliding_window", **fields: object
) -> SummaryRequest:
    """Return a request over one of the suite's conversations; `fields` replace what is given."""
    given = {"messages": messages, "mode": mode, "frame": FRAME, "max_tokens": 400, "max_chars": 4000, **fields}
    return SummaryRequest(**given)  # type: ignore[arg-type]


class SummarizerSuite:
    """Every implementation of Summarizer keeps these promises."""

    def summarizer(self) -> Summarizer:
        """Return one that works."""
        raise NotImplementedError

    @pytest.mark.parametrize("messages", [ENGLISH, CHINESE], ids=["english", "chinese"])
    @pytest.mark.parametrize("mode", ["sliding_window", "all", "bounded_recent"])
    async def test_a_draft_is_real_text(self, messages: tuple[Message, ...], mode: Mode) -> None:
        """Every mode gives text, without the frame that marked the material."""
        draft = await self.summarizer().summarize(request_for(messages, mode), CallBudget(4))
        assert draft.text.strip()
        assert FRAME not in draft.text

    @pytest.mark.parametrize("protocol", get_args(InputProtocol))
    async def test_every_input_protocol_is_taken(self, protocol: InputProtocol) -> None:
        """A summarizer answers whatever protocol the scenario names."""
        request = request_for(
            CHINESE,
            "bounded_recent",
            input_protocol=protocol,
            groups=((0, 2), (2, 4)),
            previous_summary="莉娅与用户在城里相识。",
            current_input="我回来还钥匙了。",
        )
        assert (await self.summarizer().summarize(request, CallBudget(8))).text.strip()

    async def test_calls_are_taken_exactly_when_they_cost(self) -> None:
        """A deterministic summarizer takes no call, any other takes at least one."""
        summarizer, calls = self.summarizer(), CallBudget(4)
        await summarizer.summarize(request_for(), calls)
        assert (calls.used == 0) == summarizer.deterministic

    async def test_no_call_is_made_when_none_is_left(self) -> None:
        """With nothing left to pay, a summarizer that pays refuses with SummaryLimitError."""
        summarizer, calls = self.summarizer(), CallBudget(0)
        if summarizer.deterministic:
            assert (await summarizer.summarize(request_for(), calls)).text.strip()
        else:
            with pytest.raises(SummaryLimitError):
                await summarizer.summarize(request_for(), calls)
        assert calls.used == 0

    async def test_equal_requests_give_equal_answers_when_deterministic(self) -> None:
        """Deterministic means what it says, within one object and between two."""
        one, other = self.summarizer(), self.summarizer()
        if one.deterministic:
            drafts = [await each.summarize(request_for(), CallBudget()) for each in (one, one, other)]
            assert drafts[0] == drafts[1] == drafts[2]

    def test_it_has_a_name(self) -> None:
        """Audits need one."""
        assert self.summarizer().name.strip()
