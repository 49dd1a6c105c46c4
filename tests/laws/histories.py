"""Random conversations as they really are: tools, parallel calls, orphans, pending calls, repeated call ids, odd rows.

Unlike the valid conversations of `turnfold.testing.strategies`, nothing here is promised to be well-formed. Sizes are drawn
too, so that windows of a few hundred tokens overflow.
"""

from hypothesis import strategies as st

from turnfold.messages.model import Kind, Message, Role, Text, ToolCall, ToolResult, text_message

CALL_IDS = ("c1", "c2", "c3")
"""So few that ids repeat all the time."""

SIZES = st.sampled_from([0, 3, 20, 60, 110, 110, 110, 200, 400])
"""Characters of one text."""


class _Writer:
    """Writes rows with ids in order; each text names its row, so that a row is recognized by what it says."""

    def __init__(self, draw: st.DrawFn, prefix: str) -> None:
        self.draw, self.prefix, self.rows = draw, prefix, list[Message]()

    def name(self) -> str:
        return f"{self.prefix}{len(self.rows) + 1}"

    def text(self) -> str:
        return f"[{self.name()}] " + "word " * (self.draw(SIZES) // 5)

    def say(self, role: Role, kind: Kind = "message", stop_reason: str | None = None) -> None:
        message = text_message(self.name(), role, self.text(), kind=kind)
        row = Message(id=message.id, role=role, parts=message.parts, kind=kind, stop_reason=stop_reason)
        self.rows.append(row)

    def call(self, ids: list[str]) -> None:
        calls = tuple(ToolCall(id=call_id, name="bash", arguments='{"cmd":"ls"}') for call_id in ids)
        said = (Text(text=self.text()),) if self.draw(st.booleans()) else ()
        self.rows.append(Message(id=self.name(), role="assistant", parts=(*said, *calls)))

    def result(self, *ids: str) -> None:
        parts = tuple(ToolResult(call_id=call_id, content=(Text(text=self.text()),)) for call_id in ids)
        self.rows.append(Message(id=self.name(), role="tool", parts=parts))

    def step(self, *, repeat_inside: bool) -> None:
        """Write parallel calls, answered in one row or several, wholly or not, sometimes late."""
        ids = self.draw(st.lists(st.sampled_from(CALL_IDS), min_size=1, max_size=3, unique=not repeat_inside))
        self.call(ids)
        answered = ids if self.draw(st.integers(0, 4)) else ids[:-1]
        if self.draw(st.integers(0, 9)) == 0:
            self.say("user")
        if self.draw(st.integers(0, 3)) == 0 and answered:
            self.result(*answered)
        else:
            for call_id in answered:
                self.result(call_id)

    def write(self, what: str) -> None:
        match what:
            case "user":
                self.say("user")
            case "assistant":
                self.say("assistant", stop_reason="stop")
            case "cut_off":
                self.say("assistant", stop_reason="length")
            case "system":
                self.say("system")
            case "step":
                self.step(repeat_inside=False)
            case "repeating_step":
                self.step(repeat_inside=True)
            case "orphan_call":
                self.call([self.draw(st.sampled_from(CALL_IDS))])
            case "orphan_result":
                self.result(self.draw(st.sampled_from(CALL_IDS)))
            case "summary":
                self.say("user", "summary")
            case "reminder":
                self.say("user", "reminder")
            case "memory_update":
                self.say("user", "memory_update")
            case _:
                raise AssertionError(what)


USUAL = ["user", "assistant", "user", "assistant", "step", "step"]
ODD = ["cut_off", "orphan_call", "orphan_result", "repeating_step"]
OTHER_KINDS = ["summary", "reminder", "memory_update"]


@st.composite
def histories(
    draw: st.DrawFn,
    *,
    min_size: int = 0,
    max_size: int = 30,
    odd: bool = True,
    other_kinds: bool = False,
    prefix: str = "m",
) -> tuple[Message, ...]:
    """Draw rows of a history from `min_size` to `max_size` acts (a step is one act of several rows).

    `odd` brings broken pairs, calls of one id in one message and replies cut off; `other_kinds` foreign summaries, reminders
    and memory updates.
    """
    writer = _Writer(draw, prefix)
    acts = USUAL * 3 + (ODD if odd else []) + (OTHER_KINDS if other_kinds else [])
    for what in draw(st.lists(st.sampled_from(acts), min_size=min_size, max_size=max_size)):
        writer.write(what)
    return tuple(writer.rows)


def in_order(part: tuple[Message, ...], whole: tuple[Message, ...]) -> bool:
    """Whether all rows of `part` stand in `whole` in this order."""
    rest = iter(whole)
    return all(any(row == other for other in rest) for row in part)
