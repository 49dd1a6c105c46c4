"""What is pinned stands verbatim through every compaction and every restart, tool pairs whole."""

from pathlib import Path

import pytest

from tests.small_sessions import KEY, exchange, small_session
from turnfold.messages.model import Message, Text, ToolCall, ToolResult, text_message
from turnfold.session import Session
from turnfold.stores.sqlite import SqliteStore

ASKED = text_message("ask", "user", "Which port does the database listen on?")
CALL = Message(
    id="call",
    role="assistant",
    parts=(ToolCall(id="c1", name="grep", arguments="{}"), ToolCall(id="c2", name="ls", arguments="{}")),
)
RESULT = Message(id="result", role="tool", parts=(ToolResult(call_id="c1", content=(Text(text="port = 5433"),)),))
OTHER = Message(id="other", role="tool", parts=(ToolResult(call_id="c2", content=(Text(text="db.toml"),)),))
ANSWER = text_message("answer", "assistant", "5433.")
BLOCK = (CALL, RESULT, OTHER)


async def grow(session: Session, first: int, last: int) -> int:
    """Go on with turns `first` to `last`, preparing each; return how many were compacted."""
    compacted = 0
    for number in range(first, last + 1):
        question, answer = exchange(number)
        await session.append(question)
        prepared = await session.prepare()
        compacted += prepared.outcome == "compacted"
        assert "not_verbatim" not in {reason.code for reason in prepared.reasons}
        await session.append(answer)
    return compacted


@pytest.mark.parametrize("pin_after", [0, 12], ids=["pinned in view", "pinned when covered"])
async def test_a_pinned_result_stays_with_its_calls_for_good(tmp_path: Path, pin_after: int) -> None:
    """Its call and the call's other results are shown with it, through many compactions, each in a new process."""
    path = tmp_path / "s.db"
    async with SqliteStore(path) as store, small_session(store) as session:
        await session.append(ASKED, *BLOCK, ANSWER)
        await grow(session, 1, pin_after)
        await session.pin("result")
    compacted = 0
    for first in range(pin_after + 1, pin_after + 41, 10):
        async with SqliteStore(path) as store, small_session(store) as session:
            compacted += await grow(session, first, first + 9)
            shown = (await session.view()).messages
            assert [message for message in shown if message.id in {"call", "result", "other"}] == list(BLOCK)
            assert (await store.verify(KEY)).problems == ()
    assert compacted >= 4


async def test_unpinning_lets_it_go(tmp_path: Path) -> None:
    """From the next compaction on it is only in the log."""
    async with SqliteStore(tmp_path / "s.db") as store, small_session(store) as session:
        await session.append(ASKED, *BLOCK, ANSWER)
        await session.pin("result")
        await grow(session, 1, 14)
        assert RESULT in (await session.view()).messages
        await session.unpin("result")
        await grow(session, 15, 28)
        assert RESULT not in (await session.view()).messages
