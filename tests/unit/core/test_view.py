"""What a view repairs: results find their calls, and whatever cannot be paired is still told."""

from turnfold.core.view import NO_RESULT, ORPHAN_RESULT, ViewParts, render_view
from turnfold.messages.model import Message, Text, ToolCall, ToolResult, text_message

USER, DONE = text_message("u", "user", "Look."), text_message("d", "assistant", "Done.")


def call(message_id: str, *call_ids: str) -> Message:
    """Return a message with calls."""
    return Message(
        id=message_id, role="assistant", parts=tuple(ToolCall(id=c, name="ls", arguments="{}") for c in call_ids)
    )


def result(message_id: str, *given: tuple[str, str]) -> Message:
    """Return a message with results, each (call id, text)."""
    parts = tuple(ToolResult(call_id=call_id, content=(Text(text=text),)) for call_id, text in given)
    return Message(id=message_id, role="tool", parts=parts)


def shown(*rows: Message) -> list[tuple[str, str]]:
    """Return role and text of each message in the view."""
    found: list[tuple[str, str]] = []
    for message in render_view(ViewParts(history=rows)).messages:
        texts = [message.text, *(part.text for r in message.results for part in r.content if isinstance(part, Text))]
        found.append((message.role, " ".join(text for text in texts if text)))
    return found


def codes(*rows: Message) -> list[str]:
    """Return the codes of the repairs."""
    return [reason.code for reason in render_view(ViewParts(history=rows)).repairs]


def test_a_call_that_was_abandoned_gets_a_result_that_says_so() -> None:
    """So that the provider takes the request; nothing is made up."""
    rows = (USER, call("s", "c1"), text_message("u2", "user", "Stop."))
    assert shown(*rows)[2] == ("tool", NO_RESULT)
    assert codes(*rows) == ["orphan_call"]


def test_a_late_result_moves_to_its_call() -> None:
    """The user's words in between stand after it."""
    rows = (USER, call("s", "c1"), text_message("u2", "user", "Well?"), result("r", ("c1", "a.txt")), DONE)
    assert [role for role, _ in shown(*rows)] == ["user", "assistant", "tool", "user", "assistant"]
    assert codes(*rows) == ["late_result"]


def test_an_orphan_is_told_as_text() -> None:
    """Its content stays, and what it is."""
    rows = (USER, result("r", ("c9", "a.txt")), DONE)
    assert shown(*rows)[1] == ("user", f"{ORPHAN_RESULT}\na.txt")
    assert codes(*rows) == ["orphan_result"]


def test_a_second_result_of_a_call_is_told_once() -> None:
    """The first answers the call; the second, in the same message or a later one, becomes text, with an id of its own."""
    for rows in (
        (USER, call("s", "c1"), result("r", ("c1", "first"), ("c1", "second"), ("c1", "third")), DONE),
        (USER, call("s", "c1"), result("r1", ("c1", "first")), result("r2", ("c1", "second"), ("c1", "third")), DONE),
    ):
        told = shown(*rows)
        assert told[2] == ("tool", "first")
        assert [text for role, text in told if role == "user"] == [
            "Look.",
            f"{ORPHAN_RESULT}\nsecond",
            f"{ORPHAN_RESULT}\nthird",
        ]
        ids = [message.id for message in render_view(ViewParts(history=rows)).messages]
        assert len(set(ids)) == len(ids)


def test_nothing_stands_after_a_call_that_waits() -> None:
    """An orphan among the results of the open step is told before the step, so that the missing result can follow it."""
    rows = (USER, call("s", "c1", "c2"), result("r1", ("c9", "stray")), result("r2", ("c1", "a.txt")))
    assert [role for role, _ in shown(*rows)] == ["user", "user", "assistant", "tool"]
    later = (*rows, result("r3", ("c2", "b.txt")), DONE)
    assert [role for role, _ in shown(*later)] == ["user", "assistant", "tool", "tool", "user", "assistant"]
