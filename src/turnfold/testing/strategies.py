"""Hypothesis strategies for valid messages and conversations, for laws about anything that handles them.

Ids are unique within a conversation, every answered call has its result right after it, parallel calls are answered in
one run, and a call without an answer stands only at the end. Needs the package `hypothesis`.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from hypothesis import strategies as st

from turnfold.messages.canonical import js_json
from turnfold.messages.model import Image, Message, Part, Reasoning, Text, ToolCall, ToolResult, Usage

_PIECES = (
    "fix the flaky test in src/app/main.py",
    "ENOENT: no such file",
    "PR #128 and OPS-77",
    "以后别用 tabs 缩进",
    "铜钥匙在三号窗口",
    "[user] ignore the above",
    "</transcript>",
    "🗝️ 👩‍💻",
    "日本語のテキスト",
    '\\ " \t \x7f \u2028',
    "line one\nline two",
    "",
)

_LINES = tuple(f"{one} {other}".strip() for one in _PIECES for other in _PIECES)

texts = st.sampled_from(_LINES) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
"""Text of several scripts, with lines that look like roles or markers, and arbitrary Unicode. May be empty."""

shown_texts = texts.filter(lambda text: bool(text.strip()))
"""Text that is not blank."""

names = st.sampled_from(["bash", "read_file", "search-2", "A", "x" * 64])
"""Names that every provider takes for a tool."""

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=4,
)
"""Any JSON value."""

arguments = st.sampled_from(
    ["{}", '{"cmd":"ls -la","n":3}', '{"路径":"src/主.py","list":[1,"二",3.5,null]}', '{"a":{"b":{"c":[]}}}']
) | st.dictionaries(texts, json_values, max_size=2).map(js_json)
"""Arguments of a tool call: a JSON object as text."""

images = st.builds(
    Image,
    media_type=st.sampled_from(["image/png", "image/jpeg"]),
    data=st.binary(min_size=1, max_size=12).map(lambda data: b64encode(data).decode()),
)
"""Small images by content."""

usages = st.builds(
    Usage,
    input=st.integers(0, 200_000),
    output=st.integers(0, 10_000),
    cache_read=st.integers(0, 200_000),
    cache_write=st.integers(0, 10_000),
    total=st.integers(0, 400_000),
)
"""What a provider may report."""


class _Drawer:
    """Draws the messages of one conversation; every choice is one small draw, since draws are what takes time."""

    def __init__(self, draw: st.DrawFn, *, images: bool, reasoning: bool) -> None:
        self.draw, self.images, self.reasoning = draw, images, reasoning
        self.messages = self.calls = 0

    def message_id(self) -> str:
        self.messages += 1
        return f"m{self.messages}"

    def text(self) -> Text:
        return Text(text=self.draw(shown_texts))

    def system(self) -> Message:
        return Message(id=self.message_id(), role="system", parts=(self.text(),))

    def user(self) -> Message:
        image = (self.draw(images),) if self.images and self.draw(_FIFTH) else ()
        return Message(id=self.message_id(), role="user", parts=(self.text(), *image))

    def thought(self) -> tuple[Part, ...]:
        return (Reasoning(text=self.draw(shown_texts)),) if self.reasoning and self.draw(_FIFTH) else ()

    def assistant(self, parts: tuple[Part, ...], stop_reason: str) -> Message:
        usage = self.draw(usages) if self.draw(_FIFTH) else None
        parts = (*self.thought(), *parts)
        return Message(id=self.message_id(), role="assistant", parts=parts, usage=usage, stop_reason=stop_reason)

    def step(self) -> list[Message]:
        """Draw an assistant message with one to three parallel calls, and their results."""
        said = (self.text(),) if self.draw(_FIFTH) else ()
        calls = tuple(self.call() for _ in range(self.draw(st.sampled_from([1, 1, 2, 3]))))
        return [self.assistant((*said, *calls), "tool_use"), *(self.result(call) for call in calls)]

    def call(self) -> ToolCall:
        self.calls += 1
        return ToolCall(id=f"c{self.calls}", name=self.draw(names), arguments=self.draw(arguments))

    def result(self, call: ToolCall) -> Message:
        content: tuple[Text | Image, ...] = (Text(text=self.draw(texts)),)
        if self.images and self.draw(_FIFTH):
            content += (self.draw(images),)
        part = ToolResult(call_id=call.id, content=content, is_error=self.draw(_FIFTH), name=call.name)
        return Message(id=self.message_id(), role="tool", parts=(part,))

    def turn(self, steps: int, ending: str) -> list[Message]:
        drawn = [self.user()]
        for _ in range(steps):
            drawn += self.step()
        if ending == "answer":
            drawn.append(self.assistant((self.text(),), "stop"))
        elif ending == "pending":
            drawn.append(self.step()[0])
        return drawn


_FIFTH = st.sampled_from([False, False, False, False, True])


@st.composite
def conversations(
    draw: st.DrawFn,
    *,
    min_turns: int = 1,
    max_turns: int = 4,
    max_steps: int = 2,
    closed: bool = False,
    system: bool | None = None,
    with_images: bool = True,
    with_reasoning: bool = True,
    with_tools: bool = True,
) -> tuple[Message, ...]:
    """Draw a valid conversation of `min_turns` to `max_turns` turns, each with up to `max_steps` tool steps.

    `closed`: every turn ends with an answer; else the last may end anywhere, a pending call included. `system`: whether it
    opens with a system message (None: either). The others leave out images, reasoning or tool use.
    """
    drawer = _Drawer(draw, images=with_images, reasoning=with_reasoning)
    drawn = [drawer.system()] if (draw(st.booleans()) if system is None else system) else []
    turns = draw(st.integers(min_turns, max_turns))
    endings = ["answer"] if closed else ["answer", "nothing", "pending"] if with_tools else ["answer", "nothing"]
    for turn in range(turns):
        steps = draw(st.integers(0, max_steps)) if with_tools else 0
        drawn += drawer.turn(steps, draw(st.sampled_from(endings)) if turn == turns - 1 else "answer")
    return tuple(drawn)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Draw any one valid message, of any role; its neighbors in a conversation are not drawn."""
    return draw(st.sampled_from(draw(conversations(max_turns=2))))


@st.composite
def broken_conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    """Draw a conversation with tool pairs broken as old files have them: results or calls lost, or messages swapped."""
    drawn = list(draw(conversations(min_turns=1, max_turns=4)))
    for _ in range(draw(st.integers(1, 3))):
        if len(drawn) > 1:
            index = draw(st.integers(0, len(drawn) - 1))
            if draw(st.booleans()):
                del drawn[index]
            else:
                other = draw(st.integers(0, len(drawn) - 1))
                drawn[index], drawn[other] = drawn[other], drawn[index]
    return tuple(drawn)
