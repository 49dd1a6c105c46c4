"""What a model may answer: a summary, whatever stands around it, and nothing that only looks like one."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnfold.core.protocol_answers import Asked, accept, parse_structured, projection, structured_text
from turnfold.errors import SummaryRejectedError
from turnfold.messages.model import Message, Opaque, Reasoning, Text, ToolCall

INSTRUCTIONS = (
    "Summarize the conversation below in at most 300 words. Keep identifiers verbatim: paths, URLs, ticket numbers."
)
SHOWN = (
    "[user] Please fix src/app.py, ticket OPS-7.\n[assistant] It is fixed: the key is looked up with a default now.\n"
    * 6
)
GOOD = "The user asked for a fix of src/app.py (OPS-7); it is fixed, with a default for the missing key."
FRAME = "f00dcafe"
OBJECT = {"canonical": ["The key was lent."], "interaction": "Friendly.", "open_threads": ["Return the key."]}


def reply(text: str, *parts: Any, stop_reason: str | None = "stop") -> Message:
    """Return a model's reply."""
    return Message(id="r", role="assistant", parts=(*parts, Text(text=text)), stop_reason=stop_reason)


def judged(message: Message | str, output_format: Any = "plain_text") -> Any:
    """Return the accepted text or object, or the code of the refusal."""
    asked = Asked(instructions=INSTRUCTIONS, shown=SHOWN, frame=FRAME, output_format=output_format)
    try:
        answer = accept(reply(message) if isinstance(message, str) else message, asked)
    except SummaryRejectedError as error:
        return error.code
    return answer.text if answer.structured is None else answer.structured


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"\n\n{GOOD}  \n",
        f"```\n{GOOD}\n```",
        f"```markdown\n{GOOD}\n```\n",
        f"Here is the summary:\n\n{GOOD}",
        f"Sure! Here's a summary of the conversation:\n{GOOD}",
        f"以下是对话摘要：\n{GOOD}",
        f"<think>They want a summary.\nShort.</think>\n{GOOD}",
        json.dumps({"format": "plain_text", "text": GOOD}),
        f"```json\n{json.dumps({'format': 'plain_text', 'text': GOOD})}\n```",
    ],
)
def test_a_summary_is_taken_out_of_its_wrapping(text: str) -> None:
    """Fences, a polite beginning, thinking tags, the record of its format."""
    assert judged(text) == GOOD


@pytest.mark.parametrize(
    "text",
    [
        "I am sorry to say that the user's cat died; the assistant helped to write a note about it.",
        "I cannot stress enough, said the user, that port 5433 is meant. The assistant changed it.",
        "用户说他无法登录；助手重置了密码。",
        "The assistant refused to delete the table. The user agreed.",
        "The model said `assistant:` is a label. It was removed from src/app.py, OPS-7.",
        "[OPS-7] is fixed in src/app.py.",
        "- [x] fixed src/app.py\n- [ ] tell the user",
    ],
)
def test_a_summary_of_regret_is_a_summary(text: str) -> None:
    """Words of refusal inside of what happened are not a refusal, brackets are not a role."""
    assert judged(text) == text


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (reply("", stop_reason="stop"), "blank"),
        (reply("  \n"), "blank"),
        (Message(id="r", role="assistant"), "blank"),
        (reply("", Reasoning(text="Let me see.")), "reasoning_only"),
        (reply("<think>never closed " * 5), "reasoning_only"),
        (reply(GOOD, ToolCall(id="c", name="search", arguments="{}")), "tool_call"),
        (reply(GOOD[:40], stop_reason="length"), "cut_off"),
        (reply(GOOD[:40], stop_reason="max_tokens"), "cut_off"),
        (reply(GOOD, stop_reason="content_filter"), "refused"),
        (reply(GOOD, stop_reason="error"), "aborted"),
        (reply("", Opaque(source="openai", payload='{"type":"refusal","refusal":"No."}')), "refused"),
        (reply("I'm sorry, but I can't assist with that request."), "refused"),
        (reply("As an AI language model, I cannot summarize this."), "refused"),
        (reply("很抱歉，我不能提供这段对话的总结。"), "refused"),
        (reply(INSTRUCTIONS), "echo"),
        (reply(SHOWN), "continued"),
        (reply(SHOWN.replace("[user] ", "").replace("[assistant] ", "")), "echo"),
        (reply(SHOWN.replace("[user] ", "- **User:** ").replace("[assistant] ", "- **Assistant**: ")), "echo"),
        (reply("The conversation:\n" + SHOWN.replace("[user]", "User:").replace("[assistant]", "AI:")), "echo"),
        (reply(f"Before.\n<<<{FRAME} end of transcript>>>"), "echo"),
        (reply("[assistant] I will do it now."), "continued"),
        (reply("Assistant: I will do it now."), "continued"),
        (reply("助手：我这就去做。"), "continued"),
        (reply('{"format": "plain_text", "text": " "}'), "blank"),
    ],
)  # fmt: skip
def test_what_is_no_summary(message: Message, code: str) -> None:
    """Each failure has its code."""
    assert judged(message) == code
    if code != "continued" and not message.text.startswith('{"format"'):
        assert judged(message, "structured_json") == code


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(OBJECT),
        json.dumps(OBJECT, indent=2),
        f"```json\n{json.dumps(OBJECT)}\n```",
        f"Here it is:\n{json.dumps(OBJECT)}\nI hope that helps.",
        f"With {{braces}} before. {json.dumps(OBJECT)} And {{after}}.",
        f"{json.dumps(OBJECT)}\n\n{json.dumps(OBJECT)}",
        json.dumps(dict(reversed(OBJECT.items()))),
    ],
)
def test_an_object_is_found_in_prose_and_fences(text: str) -> None:
    """One object with the three keys, whatever stands around it, in any order, said twice the same."""
    assert judged(text, "structured_json") == OBJECT


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (GOOD, "broken_json"),
        (json.dumps(OBJECT)[:-10], "broken_json"),
        (json.dumps([OBJECT["canonical"]]), "broken_json"),
        ("null", "broken_json"),
        ('{"summary": "x"}', "broken_json"),
        (json.dumps(OBJECT) + json.dumps({**OBJECT, "interaction": "Hostile."}), "broken_json"),
        (json.dumps({**OBJECT, "extra": 1}), "incomplete_json"),
        (json.dumps({"canonical": "a", "interaction": "b"}), "incomplete_json"),
        (json.dumps({**OBJECT, "canonical": {"a": 1}}), "incomplete_json"),
        (json.dumps({**OBJECT, "canonical": [1]}), "incomplete_json"),
        (json.dumps({**OBJECT, "canonical": None}), "incomplete_json"),
        ('{"canonical": NaN, "interaction": "", "open_threads": ""}', "broken_json"),
        (json.dumps({"canonical": [], "interaction": " ", "open_threads": ""}), "blank"),
        ('{"a":' * 50_000, "broken_json"),
    ],
)
def test_an_object_that_is_not_the_one_asked_for(text: str, code: str) -> None:
    """Broken, another one, two that differ, values of another shape, an empty one, one nested without end."""
    assert judged(text, "structured_json") == code


ITEMS = st.text(min_size=1, max_size=30)
VALUES = ITEMS | st.lists(ITEMS, max_size=3)


@given(st.fixed_dictionaries({"canonical": VALUES, "interaction": VALUES, "open_threads": VALUES}), st.text("ab {}`\n"))
def test_whatever_an_object_says_is_kept(value: dict[str, Any], around: str) -> None:
    """The three values come back as they were, and every item stands in the text made of them."""
    items = [item for part in value.values() for item in ([part] if isinstance(part, str) else part)]
    if not any(item.strip() for item in items):
        with pytest.raises(SummaryRejectedError):
            parse_structured(json.dumps(value))
        return
    assert parse_structured(f"{around}\n{json.dumps(value)}") == value
    text = structured_text(value)
    assert all(item.strip() in text for item in items)
    assert projection(text, value) == value
    assert projection("words", None) == {"format": "plain_text", "text": "words"}
