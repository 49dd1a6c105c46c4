"""Anthropic Messages API: requests, replies, and files of them.

A file holds `{"system": ..., "messages": [...]}` or a list of messages; also one of either on each line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from turnfold.errors import TranscriptError
from turnfold.messages.canonical import js_json
from turnfold.messages.model import Message, Text, Tool, Usage, leading_system
from turnfold.transcripts.anthropic_messages import (
    FORMAT,
    BadMessage,
    BlockReader,
    KeptMessage,
    decode_message,
    encode_messages,
)
from turnfold.transcripts.document import Entry, Event, Problem, Start, Transcript
from turnfold.transcripts.naming import Namer
from turnfold.transcripts.reading import count_of, extras, keep, rows, text_of
from turnfold.transcripts.wire import KeptLayout, among, kept_of

_CURE: Final = "Repair the message or remove it."
_OWN_BLOCKS: Final = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "document"}
)
_CACHE: Final = {"cache_control": {"type": "ephemeral"}}
_THINKING: Final = frozenset({"thinking", "redacted_thinking"})


def recognizes(value: Any) -> bool:
    """Whether one JSON value of a file is in this format: blocks or a `system` that no other format writes so."""
    if isinstance(value, list):
        return any(_own_message(message) for message in value[:200])
    if not isinstance(value, dict):
        return False
    messages = value.get("messages")
    if isinstance(messages, list):
        return "system" in value or any(_own_message(message) for message in messages[:200])
    return _own_message(value)


def _own_message(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
        return False
    content = message.get("content")
    return isinstance(content, list) and any(_own_block(block) for block in content)


def _own_block(block: Any) -> bool:
    if not isinstance(block, dict):
        return False
    kind = block.get("type")
    if kind == "image":
        return "source" in block
    return isinstance(kind, str) and kind in _OWN_BLOCKS


def events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Yield the conversations of a file. Memory: the longest line."""
    namer: Namer | None = None
    for row in rows(chunks):
        if isinstance(row, Problem):
            yield row
        elif isinstance(row.value, dict) and isinstance(row.value.get("messages"), list):
            yield from _document(row.value, row.place)
        elif isinstance(row.value, list):
            yield Start(format=FORMAT, metadata={FORMAT: {"layout": "list"}})
            yield from _listed(row.value, Namer(FORMAT), row.place)
        else:
            if namer is None:
                yield Start(format=FORMAT)
                namer = Namer(FORMAT)
            yield from _entries(row.value, namer, row.place)


def _document(document: dict[str, Any], place: str) -> Iterator[Event]:
    fields = {**extras(document, frozenset()), "messages": None}
    yield Start(
        format=FORMAT,
        metadata={FORMAT: {"layout": "document", "fields": fields}},
        tools=decode_tools(document.get("tools")),
    )
    namer = Namer(FORMAT)
    try:
        system = decode_system(document.get("system"), namer)
    except BadMessage as error:
        yield Problem(place="system", reason=str(error), cure=_CURE)
        system = None
    if system:
        yield Entry(message=system, place=f"{place}, system")
    yield from _listed(document["messages"], namer, place)


def _listed(values: Sequence[Any], namer: Namer, place: str) -> Iterator[Event]:
    for number, value in enumerate(values, 1):
        yield from _entries(value, namer, f"{place}, message {number}")


def _entries(value: Any, namer: Namer, place: str) -> Iterator[Event]:
    try:
        for message in decode_message(value, namer):
            yield Entry(message=message, place=place)
    except BadMessage as error:
        yield Problem(place=place, reason=str(error), cure=_CURE)


def decode_system(value: Any, namer: Namer) -> Message | None:
    """Return a request's system prompt as a message, None when it has none."""
    reader = BlockReader("system")
    if isinstance(value, str):
        parts: tuple[Text, ...] = (Text(text=value),) if value else ()
    else:
        blocks = [block for block in value if isinstance(block, dict)] if isinstance(value, list) else []
        reader.note_form(blocks)
        found = [reader.part(index, block) for index, block in enumerate(blocks)]
        parts = tuple(part for part in found if isinstance(part, Text))
    if not parts:
        return None
    message = Message(id="", role="system", parts=parts, metadata={FORMAT: reader.kept} if reader.kept else {})
    return replace(message, id=namer.name(message))


def decode_request(body: dict[str, Any]) -> tuple[Message, ...]:
    """Return the system prompt and messages of a request. Ids are derived from the content, so the same history gives the
    same ids. Raises TranscriptError for the first message that cannot be read.
    """
    namer = Namer(FORMAT)
    found: list[Message] = []
    values = body.get("messages")
    if not isinstance(values, list):
        raise TranscriptError("messages", "the request has no list of messages", "Send a list of messages.")
    try:
        system = decode_system(body.get("system"), namer)
    except BadMessage as error:
        raise TranscriptError("system", str(error), _CURE) from None
    found.extend([system] if system else [])
    for index, value in enumerate(values):
        try:
            found.extend(decode_message(value, namer))
        except BadMessage as error:
            raise TranscriptError(f"messages[{index}]", str(error), _CURE) from None
    return tuple(found)


def decode_reply(body: dict[str, Any], message_id: str) -> Message:
    """Return a reply as an assistant message. Raises TranscriptError when it is not one."""
    try:
        (message,) = decode_message({"role": "assistant", "content": body["content"]}, Namer(FORMAT))
    except (KeyError, TypeError, BadMessage) as error:
        raise TranscriptError("reply", f"it is not an Anthropic message ({error})", "Check the endpoint.") from None
    return Message(
        id=message_id,
        role="assistant",
        parts=message.parts,
        usage=decode_usage(body.get("usage")),
        stop_reason=text_of(body.get("stop_reason")),
        model=text_of(body.get("model")),
        metadata=message.metadata,
    )


def decode_usage(value: Any) -> Usage | None:
    """Return a reply's usage; Anthropic counts cached tokens apart, as turnfold does."""
    if not isinstance(value, dict):
        return None
    counts = {
        "input": count_of(value.get("input_tokens")),
        "output": count_of(value.get("output_tokens")),
        "cache_read": count_of(value.get("cache_read_input_tokens")),
        "cache_write": count_of(value.get("cache_creation_input_tokens")),
    }
    return Usage(**counts, total=sum(counts.values()))


def decode_tools(value: Any) -> tuple[Tool, ...]:
    """Return the client tools of a request; the provider's own tools have no schema and are left out."""
    found = []
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict) and isinstance(item.get("name"), str) and isinstance(item.get("input_schema"), dict):
            description = text_of(item.get("description")) or ""
            found.append(Tool(name=item["name"], description=description, parameters=keep(item["input_schema"])))
    return tuple(found)


def encode_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Return tools as the `tools` of a request."""
    return [
        {
            "name": tool.name,
            **({"description": tool.description} if tool.description else {}),
            "input_schema": {"type": "object", **tool.parameters},
        }
        for tool in tools
    ]


def encode_request(
    messages: Sequence[Message],
    tools: Sequence[Tool] = (),
    *,
    cache: bool = False,
    verbatim: bool = False,
    **fields: Any,
) -> dict[str, Any]:
    """Return a request's body; `fields` (model, max_tokens, thinking, ...) are put in as they are.

    Leading system messages become `system`; later ones are shown in a user message, in a frame. With `cache`, breakpoints end
    the three prefixes that stay equal from call to call: tools and system prompt, the summary, and everything sent.
    `thinking` is left out while an open tool loop has calls without thinking: the API refuses that.
    """
    messages = tuple(messages)
    leading = len(leading_system(messages))
    body: dict[str, Any] = dict(fields)
    if not _may_think(messages):
        body.pop("thinking", None)
    system = _encode_system(messages[:leading], verbatim=verbatim)
    if system:
        body["system"] = system
    body["messages"] = encode_messages(messages[leading:], verbatim=verbatim)
    if tools:
        body["tools"] = encode_tools(tools)
    if cache:
        _set_breakpoints(body, has_summary=leading < len(messages) and messages[leading].kind == "summary")
    return body


def _encode_system(messages: Sequence[Message], *, verbatim: bool) -> Any:
    texts = [part.text for message in messages for part in message.parts if isinstance(part, Text)]
    if not any(text.strip() for text in texts):
        return ""
    kept = kept_of(messages[0].metadata, FORMAT, KeptMessage) if len(messages) == 1 else {}
    if len(texts) == 1 and kept.get("form") != "list":
        return texts[0]
    rest = kept.get("parts", {}) if verbatim else {}
    shown = ((index, text) for index, text in enumerate(texts) if text.strip() or verbatim)
    return [{"type": "text", "text": text, **rest.get(str(index), {})} for index, text in shown]


def _may_think(messages: Sequence[Message]) -> bool:
    """Whether thinking may be on: calls of the open tool loop, if there are any, follow their thinking."""
    for message in reversed(messages):
        if message.role == "user":
            return True
        if message.role == "assistant":
            content = encode_messages([message])[-1]["content"] if message.calls else []
            return not message.calls or content[0]["type"] in _THINKING
    return True


def _set_breakpoints(body: dict[str, Any], *, has_summary: bool) -> None:
    """Put cache breakpoints (at most 3 of the 4 that the API allows)."""
    if isinstance(body.get("system"), str):
        body["system"] = [{"type": "text", "text": body["system"]}]
    for block in body.get("system", []):
        block.pop("cache_control", None)
    if body.get("system"):
        body["system"][-1].update(_CACHE)
    elif body.get("tools"):
        body["tools"][-1].update(_CACHE)
    messages = body["messages"]
    if has_summary:
        _mark(messages[0], first=True)
    if messages:
        _mark(messages[-1], first=False)


def _mark(message: dict[str, Any], *, first: bool) -> None:
    """Mark the message's last block that can be cached, or its first one (a summary may share its message with a request)."""
    if isinstance(message["content"], str):
        message["content"] = [{"type": "text", "text": message["content"]}]
    blocks = message["content"]
    order = range(len(blocks)) if first else reversed(range(len(blocks)))
    for index in order:
        if not among(blocks[index].get("type"), _THINKING):
            blocks[index] = {**blocks[index], **_CACHE}
            return


def encode(transcript: Transcript) -> Iterator[bytes]:
    """Yield the main path: one message a line for files of lines, else one document on one line."""
    own = transcript.format == FORMAT
    layout = kept_of(transcript.metadata, FORMAT, KeptLayout)
    body = encode_request(transcript.messages, transcript.tools, verbatim=own)
    if own and not layout:
        yield from (_line(message) for message in body["messages"])
    elif layout.get("layout") == "list":
        yield _line(body["messages"])
    else:
        fields = layout.get("fields", {})
        yield _line(
            {**{key: item for key, item in fields.items() if key in body or key != "system"}, **_shown(body, fields)}
        )


def _shown(body: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Return what the encoded request has over the fields that were read; tools come back as they were read."""
    return {key: item for key, item in body.items() if not (key == "tools" and "tools" in fields)}


def _line(value: Any) -> bytes:
    return js_json(value).encode("utf-8", "replace") + b"\n"
