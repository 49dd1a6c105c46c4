"""Laws of every codec: what was written is read back, what was read is written back, and no provider would refuse it."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from turnfold.messages.canonical import digest, js_json
from turnfold.messages.model import Message, Opaque, Part, Reasoning, Text, Tool, ToolCall, ToolResult
from turnfold.testing import strategies as ours
from turnfold.transcripts import anthropic, decode, decode_one, encode, openai_chat, openai_responses
from turnfold.transcripts.document import BranchPath, OpaqueRow, SummaryBoundary, Transcript
from turnfold.transcripts.openai_chat_messages import encode_messages
from turnfold.transcripts.openai_responses_items import encode_items
from turnfold.transcripts.validity import CHECKS

REQUEST_CODECS: dict[str, Any] = {
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "anthropic": anthropic,
}
TOOLS = (Tool(name="bash", description="run a command", parameters={"type": "object", "properties": {}}),)


def sendable(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """A conversation without the call that still waits for its result: no provider takes one."""
    return messages[:-1] if messages[-1].calls else messages


def decoded_request(name: str, body: dict[str, Any]) -> tuple[Message, ...]:
    """The messages of a request body."""
    if name == "openai_chat":
        return openai_chat.decode_messages(body["messages"])
    messages: tuple[Message, ...] = REQUEST_CODECS[name].decode_request(body)
    return messages


def meanings(messages: tuple[Message, ...]) -> list[str]:
    """What the messages mean."""
    return [digest(message) for message in messages]


def result_texts(messages: tuple[Message, ...]) -> list[Text]:
    """The texts of all tool results."""
    contents = (part for message in messages for result in message.results for part in result.content)
    return [part for part in contents if isinstance(part, Text)]


metadata = st.dictionaries(ours.texts, ours.json_values, max_size=2)


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    """Any transcript, with branches, boundaries and opaque rows."""
    messages = draw(ours.conversations(max_turns=2))
    other = tuple(
        Message(id=f"b-{message.id}", role=message.role, parts=message.parts, metadata=draw(metadata))
        for message in draw(ours.conversations(max_turns=1))
    )
    branches = (BranchPath(name="branch-1", after=messages[0].id, messages=other),) if draw(st.booleans()) else ()
    boundary = SummaryBoundary(summary_id=messages[-1].id, last_id=messages[0].id)
    row = OpaqueRow(place="line 3", kind="label", payload=js_json(draw(ours.json_values)), after=messages[0].id)
    return Transcript(
        format="turnfold",
        messages=messages,
        branches=branches,
        boundaries=(boundary,) if draw(st.booleans()) else (),
        opaque=(row,) if draw(st.booleans()) else (),
        conversation_id=draw(st.none() | ours.names),
        title=draw(st.none() | ours.texts),
        metadata=draw(metadata),
        tools=TOOLS if draw(st.booleans()) else (),
    )


@given(transcripts())
def test_the_native_format_gives_back_everything_and_the_same_bytes(transcript: Transcript) -> None:
    """Decode then encode is the identity, byte for byte, and nothing of a transcript is lost."""
    written = b"".join(encode(transcript, "turnfold"))
    read = decode_one(written, strict=True)
    assert read == transcript
    assert b"".join(encode(read, "turnfold")) == written


@given(transcripts(), st.integers(1, 97))
def test_chunks_may_end_anywhere(transcript: Transcript, size: int) -> None:
    """How the bytes of a file arrive does not matter."""
    written = b"".join(encode(transcript, "turnfold"))
    pieces = [written[start : start + size] for start in range(0, len(written), size)]
    assert decode(pieces) == decode(written)


@pytest.mark.parametrize("name", REQUEST_CODECS)
@given(messages=ours.conversations(), with_tools=st.booleans())
def test_no_request_is_one_that_its_provider_would_refuse(
    name: str, messages: tuple[Message, ...], with_tools: bool
) -> None:
    """Every valid conversation encodes into a request that the family's rules accept."""
    messages = sendable(messages)
    body = REQUEST_CODECS[name].encode_request(messages, TOOLS if with_tools else (), model="m")
    assert CHECKS[name](json.loads(js_json(body))) == ()


@pytest.mark.parametrize("name", REQUEST_CODECS)
@given(messages=ours.conversations())
def test_decode_then_encode_is_the_identity_on_what_we_write(name: str, messages: tuple[Message, ...]) -> None:
    """A request that was read and written again is the same request."""
    body = REQUEST_CODECS[name].encode_request(sendable(messages), model="m")
    again = REQUEST_CODECS[name].encode_request(decoded_request(name, body), model="m")
    assert js_json(again) == js_json(body)


@pytest.mark.parametrize("name", REQUEST_CODECS)
@given(messages=ours.conversations(with_images=False))
def test_a_request_means_what_the_conversation_means(name: str, messages: tuple[Message, ...]) -> None:
    """Digests of text, calls and results survive each wire format, so a stateless history finds its checkpoint."""
    messages = sendable(messages)
    if messages[-1].role == "assistant":  # as a last message its blank end is cut, since Anthropic refuses it
        messages = (*messages, Message(id="next", role="user", parts=(Text(text="go on"),)))
    assume(not any(part.text.isspace() for part in result_texts(messages)))  # Anthropic refuses blank blocks
    body = json.loads(js_json(REQUEST_CODECS[name].encode_request(messages, model="m")))
    assert meanings(decoded_request(name, body)) == meanings(messages)


@pytest.mark.parametrize("name", REQUEST_CODECS)
@given(messages=ours.conversations(max_turns=3))
def test_ids_of_a_prefix_are_a_prefix_of_the_ids(name: str, messages: tuple[Message, ...]) -> None:
    """Derived ids depend on what came before alone: a history that grew keeps the ids it had."""
    body = REQUEST_CODECS[name].encode_request(sendable(messages), model="m")
    whole = [message.id for message in decoded_request(name, body)]
    listed = body.get("messages", body.get("input"))
    for cut in range(1, len(listed) + 1):
        part = {**body, ("messages" if "messages" in body else "input"): listed[:cut]}
        ids = [message.id for message in decoded_request(name, part)]
        assert ids[:-1] == whole[: len(ids) - 1]  # a cut may fall into the last message
    assert len(set(whole)) == len(whole)


fields = st.dictionaries(st.sampled_from(["x_custom", "annotations", "时间"]), ours.json_values, max_size=1)
text_parts = st.builds(lambda text, rest: {"type": "text", "text": text, **rest}, ours.texts, fields)
image_parts = st.sampled_from(
    [
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
    ]
)


@st.composite
def openai_messages(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Messages as clients send them: lists where text would do, names, unknown fields, reasoning, custom calls."""
    out: list[dict[str, Any]] = []
    if draw(st.booleans()):
        out.append({"role": draw(st.sampled_from(["system", "developer"])), "content": draw(ours.texts)})
    for index in range(draw(st.integers(1, 3))):
        content = draw(st.one_of(ours.texts, st.lists(text_parts | image_parts, max_size=3)))
        name = {"name": draw(ours.names)} if draw(st.booleans()) else {}
        out.append({"role": "user", "content": content, **name, **draw(fields)})
        thought = {"reasoning_content": draw(ours.texts)} if draw(st.booleans()) else {}
        if draw(st.booleans()):
            call = {"id": f"c{index}", "type": "function", "function": {"name": "f", "arguments": draw(ours.arguments)}}
            custom = {"id": f"d{index}", "type": "custom", "custom": {"name": "g", "input": draw(ours.texts)}}
            said = draw(st.none() | ours.texts)
            out.append({"role": "assistant", "content": said, **thought, "tool_calls": [call, custom], **draw(fields)})
            out.append({"role": "tool", "tool_call_id": f"c{index}", "content": draw(ours.texts)})
            out.append({"role": "tool", "tool_call_id": f"d{index}", "content": draw(st.lists(text_parts, max_size=2))})
        answer: Any = draw(st.none() | ours.texts | st.lists(text_parts, max_size=2))
        out.append({"role": "assistant", "content": answer, **thought, **draw(fields)})
    return out


@given(openai_messages())
def test_a_clients_own_chat_request_comes_back_as_it_was(messages: list[dict[str, Any]]) -> None:
    """`verbatim` gives back everything that a client sent, so a proxy changes only what it means to change."""
    read = openai_chat.decode_messages(messages)
    assert encode_messages(read, verbatim=True) == messages


signed = st.builds(
    lambda text, signature: {"type": "thinking", "thinking": text, "signature": signature}, ours.texts, ours.names
)
redacted = st.builds(lambda data: {"type": "redacted_thinking", "data": data}, ours.names)
blocks = st.builds(lambda text: {"type": "text", "text": text}, ours.shown_texts)
cached = st.builds(lambda block: {**block, "cache_control": {"type": "ephemeral"}}, blocks)
result_contents = ours.shown_texts | st.lists(
    blocks | st.just({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}),
    min_size=1,
    max_size=2,
)


@st.composite
def anthropic_bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Requests as clients send them: signed thinking in tool loops, cache marks, grouped results, errors."""
    out: list[dict[str, Any]] = []
    carried: list[dict[str, Any]] = []
    for index in range(draw(st.integers(1, 3))):
        said = draw(st.lists(blocks | cached, min_size=1, max_size=2))
        text = draw(ours.shown_texts)
        as_list = bool(carried) or draw(st.booleans())
        out.append({"role": "user", "content": [*carried, *said] if as_list else text})
        carried = []
        thought = draw(st.lists(signed | redacted, max_size=1))
        if draw(st.booleans()):
            calls = [
                {"type": "tool_use", "id": f"t{index}-{n}", "name": "f", "input": {"n": n}}
                for n in range(draw(st.integers(1, 3)))
            ]
            out.append({"role": "assistant", "content": [*thought, *draw(st.lists(blocks, max_size=1)), *calls]})
            for call in calls:
                result = {"type": "tool_result", "tool_use_id": call["id"], "content": draw(result_contents)}
                carried.append({**result, **({"is_error": True} if draw(st.booleans()) else {})})
        else:
            out.append({"role": "assistant", "content": [*thought, *draw(st.lists(blocks, min_size=1, max_size=2))]})
    if carried:
        out.append({"role": "user", "content": carried})
    system = draw(st.none() | ours.shown_texts | st.lists(blocks | cached, min_size=1, max_size=2))
    return {"messages": out} if system is None else {"system": system, "messages": out}


@given(anthropic_bodies())
def test_a_clients_own_anthropic_request_comes_back_as_it_was(body: dict[str, Any]) -> None:
    """Signed thinking, grouped results and cache marks survive, byte for byte."""
    read = anthropic.decode_request(body)
    assert anthropic.encode_request(read, verbatim=True) == body


@given(anthropic_bodies())
def test_signed_thinking_stays_with_its_calls(body: dict[str, Any]) -> None:
    """Thinking that came with a signature is sent back before the calls that it led to, in every request."""
    sent = anthropic.encode_request(anthropic.decode_request(body))
    given_thoughts = [block for message in body["messages"] for block in _thoughts(message)]
    assert [block for message in sent["messages"] for block in _thoughts(message)] == given_thoughts


def _thoughts(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"] if isinstance(message["content"], list) else []
    return [block for block in content if "thinking" in block["type"]]


@given(messages=ours.conversations(system=True), kind=st.sampled_from(["message", "summary"]))
def test_cache_breakpoints_end_stable_prefixes(messages: tuple[Message, ...], kind: Any) -> None:
    """Asked for caching, a request has at most four breakpoints, one at the system prompt, one at its end."""
    summary = Message(id="s", role="user", parts=(Text(text="what came before"),), kind=kind)
    body = anthropic.encode_request((messages[0], summary, *sendable(messages)[1:]), TOOLS, cache=True)
    assert CHECKS["anthropic"](body) == ()
    assert "cache_control" in body["system"][-1]
    last = body["messages"][-1]["content"]
    assert any("cache_control" in block for block in last)
    if kind == "summary":
        assert "cache_control" in body["messages"][0]["content"][0]


@st.composite
def response_items(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Items as the API gave them: encrypted reasoning before calls and messages, ids, several messages in a row."""
    out: list[dict[str, Any]] = []
    for index in range(draw(st.integers(1, 3))):
        content = draw(ours.texts | st.lists(st.builds(_input_text, ours.texts), min_size=1, max_size=2))
        head = {"type": "message"} if draw(st.booleans()) else {}
        out.append({**head, "role": draw(st.sampled_from(["user", "developer"])), "content": content})
        calls = draw(st.integers(0, 2))
        for number in range(calls):
            out.extend(draw(st.lists(_reasoning(f"rs_{index}_{number}"), max_size=1)))
            call = {"type": "function_call", "call_id": f"c{index}-{number}", "name": "f"}
            out.append({**call, "arguments": draw(ours.arguments), "id": f"fc_{index}_{number}", "status": "completed"})
        for number in range(calls):
            output = draw(ours.texts | st.lists(st.builds(_input_text, ours.texts), max_size=2))
            out.append({"type": "function_call_output", "call_id": f"c{index}-{number}", "output": output})
        out.extend(draw(st.lists(_reasoning(f"rs_{index}"), max_size=1)))
        for number in range(draw(st.integers(1, 2))):
            said = {"type": "output_text", "text": draw(ours.texts), "annotations": []}
            out.append({"type": "message", "role": "assistant", "content": [said], "id": f"msg_{index}_{number}"})
    return out


def _input_text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def _reasoning(name: str) -> st.SearchStrategy[dict[str, Any]]:
    summary = st.lists(st.builds(lambda text: {"type": "summary_text", "text": text}, ours.texts), max_size=2)
    return st.builds(
        lambda texts, data: {"type": "reasoning", "id": name, "summary": texts, "encrypted_content": data},
        summary,
        ours.names,
    )


@given(response_items())
def test_a_clients_own_response_items_come_back_as_they_were(items: list[dict[str, Any]]) -> None:
    """`verbatim` gives back every item, its id and its encrypted reasoning."""
    read = openai_responses.decode_request({"input": items})
    assert encode_items(read, verbatim=True) == items


@given(response_items(), st.integers(0, 8))
def test_encrypted_reasoning_goes_back_right_before_its_item(items: list[dict[str, Any]], start: int) -> None:
    """Reasoning is sent with its encrypted content and always leads to an item, whatever was cut off before it."""
    read = openai_responses.decode_request({"input": items})
    users = [index for index, message in enumerate(read) if message.role == "user"]
    kept = read[users[start % len(users)] :] if users else read
    body = openai_responses.encode_request(kept)
    assert CHECKS["openai_responses"](body) == ()
    thoughts = [part for message in kept for part in message.parts if isinstance(part, Reasoning)]
    assert sum(item["type"] == "reasoning" for item in body["input"]) == len(thoughts)


@given(st.lists(st.sampled_from(["call_0", "functions.Bash:0", "", "x" * 90, "调用"]), min_size=1, max_size=6))
def test_foreign_call_ids_are_made_legal_and_stay_paired(ids: list[str]) -> None:
    """Ids that repeat or that a provider refuses get stand-ins; each result still answers its own call."""
    messages: list[Message] = [Message(id="u", role="user", parts=(Text(text="go"),))]
    for index, call_id in enumerate(ids):
        call = ToolCall(id=call_id, name=f"tool.{index}/名", arguments="not json")
        result = ToolResult(call_id=call_id, content=(Text(text=f"result {index}"),))
        messages.append(Message(id=f"a{index}", role="assistant", parts=(call,)))
        messages.append(Message(id=f"t{index}", role="tool", parts=(result,)))
    for name, codec in REQUEST_CODECS.items():
        assert CHECKS[name](codec.encode_request(messages)) == ()


@given(ours.conversations(), st.lists(st.integers(0, 20), max_size=4))
def test_foreign_content_never_breaks_a_request(messages: tuple[Message, ...], places: list[int]) -> None:
    """Opaque content and reasoning of other formats, blank text and emptied messages give no invalid request."""
    strange: tuple[Part, ...] = (
        Opaque(source="codex", payload='{"type":"x"}'),
        Opaque(source="anthropic", payload="not json"),
        Reasoning(text="hm", payload="not json", provider="anthropic"),
        Reasoning(text="hm", payload='{"type":"reasoning"}', provider="openai_responses"),
        Text(text="  \n"),
    )
    changed = list(sendable(messages))
    for place in places:
        index = place % len(changed)
        if changed[index].role != "tool" and not changed[index].calls:
            old = changed[index]
            changed[index] = Message(id=old.id, role=old.role, parts=strange)
    for name, codec in REQUEST_CODECS.items():
        assert CHECKS[name](codec.encode_request(changed)) == ()
