"""Messages are frozen values that read as a reader expects."""

import msgspec
import pytest

from turnfold.messages.log import ConversationKey
from turnfold.messages.model import Message, Text, ToolCall, ToolResult, Usage, add_usage, text_message


def test_a_message_cannot_change_under_anyones_hands() -> None:
    """Assigning to a field is an error."""
    message = text_message("m", "user", "a")
    with pytest.raises(AttributeError):
        message.role = "assistant"  # type: ignore[misc]


def test_parts_are_found_by_what_they_are() -> None:
    """Text, calls and results, each in order."""
    call, result = ToolCall(id="c", name="x", arguments="{}"), ToolResult(call_id="c")
    message = Message(id="m", role="assistant", parts=(Text(text="a"), call, Text(text="b"), result))
    assert (message.text, message.calls, message.results) == ("a\nb", (call,), (result,))


def test_a_message_survives_its_encoding() -> None:
    """Stored and read again it is the same value, parts told apart."""
    message = Message(
        id="m",
        role="assistant",
        parts=(Text(text=""), ToolCall(id="c", name="x", arguments="{")),
        usage=Usage(input=1, cache_read=2),
        metadata={"a": [1]},
    )
    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message


def test_usage_counts_the_request_cached_or_not() -> None:
    """The prompt is what was new, read from the cache and written to it."""
    assert Usage(input=1, output=2, cache_read=4, cache_write=8, total=99).prompt == 13


def test_usages_add_up() -> None:
    """Calls of one compaction are summed; not reported is not zero."""
    assert add_usage(Usage(input=1, output=2), Usage(input=3, total=4)) == Usage(input=4, output=2, total=4)
    assert add_usage(None, Usage(input=1)) == Usage(input=1)
    assert add_usage(None, None) is None


def test_keys_order_by_tenant_then_user() -> None:
    """Data can be partitioned by tenant and user; the text of a key leaves out what is empty."""
    keys = [ConversationKey(tenant=t, user=u, conversation_id=c) for t in "ab" for u in "ab" for c in "ab"]
    assert [str(key) for key in keys] == ["a/a/a", "a/a/b", "a/b/a", "a/b/b", "b/a/a", "b/a/b", "b/b/a", "b/b/b"]
    assert str(ConversationKey(conversation_id="c")) == "c"
