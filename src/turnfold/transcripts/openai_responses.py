"""OpenAI Responses API: requests, replies, and files of them.

A file holds a request (`{"input": [...]}`), a list of items, or one item on each line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from turnfold.errors import TranscriptError
from turnfold.messages.canonical import js_json
from turnfold.messages.model import Message, Text, Tool, Usage
from turnfold.transcripts.document import Entry, Event, Problem, Start, Transcript
from turnfold.transcripts.naming import Namer
from turnfold.transcripts.openai_responses_items import FORMAT, ITEM_TYPES, BadItem, ItemReader, encode_items
from turnfold.transcripts.reading import count_of, epoch_ms, extras, keep, rows, text_of
from turnfold.transcripts.wire import KeptLayout, among, kept_of

_CURE: Final = "Repair the item or remove it."
_OWN_TYPES: Final = ITEM_TYPES - {"message"}
_OWN_CONTENT: Final = frozenset({"input_text", "output_text", "input_image"})


def recognizes(value: Any) -> bool:
    """Whether one JSON value of a file is in this format: items or content that no other format writes so."""
    if isinstance(value, list):
        return any(_own_item(item) for item in value[:200])
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("input"), list):
        return any(_own_item(item) or (isinstance(item, dict) and "role" in item) for item in value["input"][:200])
    return _own_item(value)


def _own_item(item: Any) -> bool:
    if not isinstance(item, dict):
        return False
    kind, content = item.get("type"), item.get("content")
    if isinstance(kind, str) and kind in _OWN_TYPES:
        return kind != "reasoning" or "summary" in item or "encrypted_content" in item
    parts = content if isinstance(content, list) else ()
    return "role" in item and any(isinstance(part, dict) and among(part.get("type"), _OWN_CONTENT) for part in parts)


def events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Yield the conversations of a file. Memory: the longest line."""
    lone: _Conversation | None = None
    for row in rows(chunks):
        if isinstance(row, Problem):
            yield row
        elif isinstance(row.value, dict) and isinstance(row.value.get("input"), list):
            yield from _document(row.value, row.place)
        elif isinstance(row.value, list):
            yield Start(format=FORMAT, metadata={FORMAT: {"layout": "list"}})
            yield from _Conversation().take_all(row.value, row.place)
        else:
            if lone is None:
                yield Start(format=FORMAT)
                lone = _Conversation()
            yield from lone.take(row.value, row.place)
    if lone is not None:
        yield from lone.finish()


def _document(document: dict[str, Any], place: str) -> Iterator[Event]:
    fields = {**extras(document, frozenset()), "input": None}
    tools = decode_tools(document.get("tools"))
    yield Start(format=FORMAT, metadata={FORMAT: {"layout": "document", "fields": fields}}, tools=tools)
    conversation = _Conversation()
    instructions = decode_instructions(document.get("instructions"))
    if instructions:
        yield Entry(message=conversation.named(instructions), place=f"{place}, instructions")
    yield from conversation.take_all(document["input"], place)


class _Conversation:
    """The items of one conversation, in order."""

    def __init__(self) -> None:
        self.reader, self.namer, self.place = ItemReader(), Namer("responses"), ""

    def named(self, message: Message) -> Message:
        return replace(message, id=self.namer.name(message))

    def take_all(self, items: Sequence[Any], place: str) -> Iterator[Event]:
        for number, item in enumerate(items, 1):
            yield from self.take(item, f"{place}, item {number}")
        yield from self.finish()

    def take(self, item: Any, place: str) -> Iterator[Event]:
        try:
            for message in self.reader.take(item):
                yield Entry(message=self.named(message), place=place)
        except BadItem as error:
            yield Problem(place=place, reason=str(error), cure=_CURE)
        self.place = place

    def finish(self) -> Iterator[Event]:
        for message in self.reader.flush():
            yield Entry(message=self.named(message), place=self.place)


def decode_instructions(value: Any) -> Message | None:
    """Return a request's instructions as a system message without an id, None when it has none."""
    return Message(id="", role="system", parts=(Text(text=value),)) if isinstance(value, str) and value else None


def decode_request(body: dict[str, Any]) -> tuple[Message, ...]:
    """Return the instructions and input of a request. Ids are derived from the content, so the same history gives the same
    ids. Raises TranscriptError for the first item that cannot be read.
    """
    given = body.get("input")
    items = [{"role": "user", "content": given, "type": "message"}] if isinstance(given, str) else given
    if not isinstance(items, list):
        raise TranscriptError("input", "the request has no input", "Send text or a list of items.")
    reader, found = ItemReader(), [message for message in (decode_instructions(body.get("instructions")),) if message]
    for index, item in enumerate(items):
        try:
            found.extend(reader.take(item))
        except BadItem as error:
            raise TranscriptError(f"input[{index}]", str(error), _CURE) from None
    found.extend(reader.flush())
    namer = Namer("responses")
    return tuple(replace(message, id=namer.name(message)) for message in found)


def decode_reply(body: dict[str, Any], message_id: str) -> Message:
    """Return a response as an assistant message. Raises TranscriptError when it is not one."""
    reader = ItemReader()
    try:
        found = [message for item in body["output"] for message in reader.take(item)]
        found.extend(reader.flush())
    except (KeyError, TypeError, BadItem) as error:
        raise TranscriptError("reply", f"it is not a response ({error})", "Check the endpoint.") from None
    if len(found) != 1 or found[0].role != "assistant":
        raise TranscriptError("reply", "it holds no single assistant message", "Check the endpoint.")
    details = body.get("incomplete_details")
    reason = text_of(details.get("reason")) if isinstance(details, dict) else None
    return replace(
        found[0],
        id=message_id,
        created_at=epoch_ms(body.get("created_at"), unit=1000),
        usage=decode_usage(body.get("usage")),
        stop_reason=reason or text_of(body.get("status")),
        model=text_of(body.get("model")),
    )


def decode_usage(value: Any) -> Usage | None:
    """Return a response's usage. OpenAI counts cached tokens within the input; turnfold counts them apart."""
    if not isinstance(value, dict):
        return None
    details = value.get("input_tokens_details")
    cached = count_of(details.get("cached_tokens")) if isinstance(details, dict) else 0
    given = count_of(value.get("input_tokens"))
    return Usage(
        input=max(0, given - cached),
        output=count_of(value.get("output_tokens")),
        cache_read=min(cached, given),
        total=count_of(value.get("total_tokens")),
    )


def decode_tools(value: Any) -> tuple[Tool, ...]:
    """Return the function tools of a request; tools of other kinds are left out."""
    found = []
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict) and item.get("type") == "function" and isinstance(item.get("name"), str):
            parameters = item.get("parameters")
            found.append(
                Tool(
                    name=item["name"],
                    description=text_of(item.get("description")) or "",
                    parameters=keep(parameters) if isinstance(parameters, dict) else {},
                )
            )
    return tuple(found)


def encode_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Return tools as the `tools` of a request."""
    return [
        {
            "type": "function",
            "name": tool.name,
            **({"description": tool.description} if tool.description else {}),
            "parameters": tool.parameters or {"type": "object", "properties": {}},
            "strict": False,  # the API would make every parameter required otherwise
        }
        for tool in tools
    ]


def encode_request(
    messages: Sequence[Message],
    tools: Sequence[Tool] = (),
    *,
    store: bool = False,
    verbatim: bool = False,
    **fields: Any,
) -> dict[str, Any]:
    """Return a request's body; `fields` (model, max_output_tokens, ...) are put in as they are.

    The first message becomes `instructions` when it is a plain system message. Without `store`, encrypted reasoning is asked
    for, so that it can go back in the next request.
    """
    messages = tuple(messages)
    body: dict[str, Any] = {**fields, "store": store}
    if not store:
        body["include"] = ["reasoning.encrypted_content"]
    return {**body, **_content(messages, tools, store=store, verbatim=verbatim)}


def _content(messages: tuple[Message, ...], tools: Sequence[Tool], *, store: bool, verbatim: bool) -> dict[str, Any]:
    body: dict[str, Any] = {}
    if messages and _is_instructions(messages[0]):
        body["instructions"] = messages[0].text
        messages = messages[1:]
    body["input"] = encode_items(messages, store=store, verbatim=verbatim)
    return {**body, "tools": encode_tools(tools)} if tools else body


def _is_instructions(message: Message) -> bool:
    plain = message.role == "system" and FORMAT not in message.metadata
    return plain and len(message.parts) == 1 and isinstance(message.parts[0], Text)


def encode(transcript: Transcript) -> Iterator[bytes]:
    """Yield the main path: one item a line for files of lines, else one document on one line."""
    own = transcript.format == FORMAT
    layout = kept_of(transcript.metadata, FORMAT, KeptLayout)
    if own and layout.get("layout") != "document":
        items = encode_items(transcript.messages, verbatim=True)
        yield from [_line(items)] if layout else (_line(item) for item in items)
        return
    body = _content(transcript.messages, transcript.tools, store=False, verbatim=own)
    fields = layout.get("fields", {})
    yield _line({**fields, **{key: item for key, item in body.items() if not (key == "tools" and key in fields)}})


def _line(value: Any) -> bytes:
    return js_json(value).encode("utf-8", "replace") + b"\n"
