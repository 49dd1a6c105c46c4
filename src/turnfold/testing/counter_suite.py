"""The contract of the TokenCounter port, as tests: subclass the suite, say how to make one, and pytest runs it.

Needs pytest and Hypothesis.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnfold.messages.model import (
    Image,
    Message,
    Opaque,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
    text_message,
)
from turnfold.ports import TokenCounter

CHINESE = "莉娅借出了那把铜钥匙，说好天黑之前在城门口归还；守卫酉时换班，城门会空出一盏茶的工夫。"
BASE64 = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ" * 400
SLACK = 2
"""Tokens by which two texts joined may count more than apart: the seam may break a token."""


class CounterSuite:
    """Every implementation of TokenCounter keeps these promises."""

    undercounts_chinese: ClassVar[bool] = False
    """Set it for a counter that is known to, and say why it is kept."""

    def counter(self) -> TokenCounter:
        """Return one."""
        raise NotImplementedError

    def test_it_has_a_name_under_which_counts_are_stored(self) -> None:
        """Always the same."""
        assert self.counter().name == self.counter().name != ""

    def test_nothing_takes_nothing(self) -> None:
        """Empty text has no tokens, and any text has some."""
        counter = self.counter()
        assert counter.count_text("") == 0
        assert counter.count_text("a") >= 1
        assert counter.count_tools(()) == 0
        assert counter.request_overhead >= 0

    def test_counts_are_steady_and_add_up(self) -> None:
        """Equal texts count equally; joined texts count about as much as apart, never much more."""
        counter = self.counter()

        @given(text=st.text(), other=st.text())
        def judge(text: str, other: str) -> None:
            one, two = counter.count_text(text), counter.count_text(other)
            assert one == counter.count_text(text) >= bool(text)
            assert counter.count_text(text + other) <= one + two + SLACK

        judge()

    @pytest.mark.parametrize("text", ["\ud83d", "a\udc00b", "\x00", "\u2028", "👩‍💻" * 50, "<|endoftext|>", "￿"])
    def test_odd_text_is_counted(self, text: str) -> None:
        """Halves of characters, control characters and what looks like a special token are text like any other."""
        assert 1 <= self.counter().count_text(text) <= 12 * len(text)

    @pytest.mark.parametrize("text", ["a" * 200_000, " " * 200_000, "我" * 100_000, BASE64 * 12, "\n" * 100_000])
    def test_long_runs_do_not_collapse_it(self, text: str) -> None:
        """It ends, and counts something; a whole suite of tests waits for it."""
        assert self.counter().count_text(text) >= 1

    def test_a_message_counts_by_role_and_parts_alone(self) -> None:
        """Not by its id, times, usage or metadata: counts are stored and found again by what it means."""
        counter, message = self.counter(), text_message("m1", "assistant", "It is done.")
        other = msgspec.structs.replace(
            message, id="m2", created_at=5, usage=Usage(input=9), model="x", metadata={"name": "Ann"}
        )
        assert counter.count_message(message) == counter.count_message(other) > 0

    @pytest.mark.parametrize(
        "part",
        [
            Text(text="some more words"),
            Reasoning(text="some more thoughts"),
            ToolCall(id="c1", name="read_file", arguments='{"path":"a/b.py"}'),
            Image(media_type="image/png", data=BASE64),
            Opaque(source="x", payload='{"kind":"citation","text":"some more words"}'),
        ],
        ids=lambda part: type(part).__name__,
    )
    def test_every_part_counts(self, part: Text | Reasoning | ToolCall | Image | Opaque) -> None:
        """Whatever is sent takes tokens."""
        counter, bare = self.counter(), text_message("m1", "assistant", "Look.")
        more = msgspec.structs.replace(bare, parts=(*bare.parts, part))
        assert counter.count_message(more) > counter.count_message(bare)

    def test_a_tool_result_counts_its_content(self) -> None:
        """Also an image in it, as an image and not as base64 text."""
        counter = self.counter()

        def result(*content: Text | Image | Opaque) -> int:
            parts = (ToolResult(call_id="c1", content=content),)
            return counter.count_message(Message(id="r", role="tool", parts=parts))

        words = Text(text="forty files were found in the folder")
        assert result(words) >= counter.count_text(words.text)
        image = Image(media_type="image/png", data=BASE64)
        assert 0 < result(words, image) - result(words) < counter.count_text(BASE64) / 3
        assert result(words, Opaque(source="x", payload=f'{{"data":"{BASE64}"}}')) < counter.count_text(BASE64) / 3

    def test_tools_count_with_their_schemas(self) -> None:
        """Name, description and parameters."""
        counter = self.counter()
        schema = {"type": "object", "properties": {"path": {"type": "string", "description": "Where to look."}}}
        bare, full = Tool(name="ls"), Tool(name="ls", description="List a folder.", parameters=schema)
        assert 0 < counter.count_tools((bare,)) < counter.count_tools((full,))
        assert counter.count_tools((bare, full)) == counter.count_tools((bare,)) + counter.count_tools((full,))

    def test_chinese_is_not_undercounted(self) -> None:
        """Four characters a token is about 70 % too low for it."""
        share = self.counter().count_text(CHINESE) / len(CHINESE)
        assert (share < 0.5) == self.undercounts_chinese
