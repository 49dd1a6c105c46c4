"""OpenAI Chat Completions: messages, requests and replies, and files of them.

A file holds a list of messages, `{"messages": [...]}`, or one of either on each line (fine-tuning data); a line may also hold
one message. Fields that turnfold has no place for are kept under `metadata["openai_chat"]` and written back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from turnfold.errors import TranscriptError
from turnfold.messages.canonical import js_json
from turnfold.messages.model import Message, Tool
from turnfold.transcripts.document import Entry, Event, Problem, Start, Transcript
from turnfold.transcripts.naming import Namer
from turnfold.transcripts.openai_chat_messages import FORMAT, BadMessage, Reader, decode_usage, encode_messages
from turnfold.transcripts.reading import epoch_ms, extras, keep, rows, text_of
from turnfold.transcripts.wire import KeptLayout, kept_of

_CURE: Final = "Repair the message or remove it."


def recognizes(value: Any) -> bool:
    """Whether one JSON value of a file is in this format."""
    if isinstance(value, list):
        return bool(value) and recognizes(value[0])
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("messages"), list):
        return not value["messages"] or recognizes(value["messages"][0])
    return isinstance(value.get("role"), str) and (
        "content" in value or "tool_calls" in value or "function_call" in value
    )


def events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Yield the conversations of a file, one message at a time. Memory: the longest line."""
    lone: _Conversation | None = None
    for row in rows(chunks):
        if isinstance(row, Problem):
            yield row
            continue
        conversations = list(_conversations(row.value))
        for document, messages in conversations:
            yield _start(document)
            yield from _Conversation().take_all(messages, row.place)
        if not conversations:
            if lone is None:
                yield Start(format=FORMAT)
                lone = _Conversation()
            yield from lone.take(row.value, row.place)


def _conversations(value: Any) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Yield (document, messages) for each conversation that one JSON value holds; nothing for a single message."""
    if isinstance(value, dict):
        if isinstance(value.get("messages"), list):
            yield value, value["messages"]
    elif isinstance(value, list):
        if value and all(isinstance(item, list) or (isinstance(item, dict) and "messages" in item) for item in value):
            for item in value:
                yield from _conversations(item)
        else:
            yield {}, value


def _start(document: dict[str, Any]) -> Start:
    fields = extras({**document, "messages": None}, frozenset())
    return Start(
        format=FORMAT,
        conversation_id=text_of(document.get("id")) or text_of(document.get("conversation_id")),
        title=text_of(document.get("title")),
        metadata={FORMAT: {"layout": "document", "fields": fields} if document else {"layout": "list"}},
        tools=decode_tools(document.get("tools")),
    )


class _Conversation:
    """The messages of one conversation, in order."""

    def __init__(self) -> None:
        self.reader, self.namer = Reader(), Namer("openai")

    def take_all(self, values: Sequence[Any], place: str) -> Iterator[Event]:
        for number, value in enumerate(values, 1):
            yield from self.take(value, f"{place}, message {number}")

    def take(self, value: Any, place: str) -> Iterator[Event]:
        try:
            message = self.reader.message(value, self.namer)
        except BadMessage as error:
            yield Problem(place=place, reason=str(error), cure=_CURE)
            return
        yield Entry(message=message, place=place)


def decode_messages(values: Sequence[Any]) -> tuple[Message, ...]:
    """Return the messages of a request. Ids that the request does not give are derived from its content, so the same
    history gives the same ids. Raises TranscriptError for the first message that cannot be read.
    """
    reader, namer, messages = Reader(), Namer("openai"), []
    for index, value in enumerate(values):
        try:
            messages.append(reader.message(value, namer))
        except BadMessage as error:
            raise TranscriptError(f"messages[{index}]", str(error), _CURE) from None
    return tuple(messages)


def decode_reply(body: dict[str, Any], message_id: str) -> Message:
    """Return the first choice of a completion as an assistant message. Raises TranscriptError when there is none."""
    try:
        choice = body["choices"][0]
        value = {**choice["message"], "role": "assistant"}
        message = Reader().message({**value, "id": message_id}, Namer("openai"))
    except (KeyError, IndexError, TypeError, BadMessage) as error:
        raise TranscriptError("reply", f"it is not a chat completion ({error})", "Check the endpoint.") from None
    namespace = {key: item for key, item in message.metadata.get(FORMAT, {}).items() if key != "id"}
    return Message(
        id=message.id,
        role="assistant",
        parts=message.parts,
        created_at=epoch_ms(body.get("created"), unit=1000),
        usage=decode_usage(body.get("usage")),
        stop_reason=text_of(choice.get("finish_reason")),
        model=text_of(body.get("model")),
        metadata={**message.metadata, FORMAT: namespace} if namespace else {},
    )


def decode_tools(value: Any) -> tuple[Tool, ...]:
    """Return the function tools of a request; tools of other kinds are not functions and are left out."""
    found = []
    for item in value if isinstance(value, list) else ():
        function = item.get("function") if isinstance(item, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            parameters = function.get("parameters")
            found.append(
                Tool(
                    name=function["name"],
                    description=text_of(function.get("description")) or "",
                    parameters=keep(parameters) if isinstance(parameters, dict) else {},
                )
            )
    return tuple(found)


def encode_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Return tools as the `tools` of a request."""
    return [{"type": "function", "function": _function(tool)} for tool in tools]


def _function(tool: Tool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    return {**function, "parameters": tool.parameters or {"type": "object", "properties": {}}}


def encode_request(
    messages: Iterable[Message],
    tools: Sequence[Tool] = (),
    *,
    reasoning: bool = False,
    verbatim: bool = False,
    **fields: Any,
) -> dict[str, Any]:
    """Return a request's body; `fields` (model, temperature, ...) are put in as they are, the rest as `encode_messages`."""
    body = {**fields, "messages": encode_messages(messages, reasoning=reasoning, verbatim=verbatim)}
    return {**body, "tools": encode_tools(tools)} if tools else body


def encode(transcript: Transcript) -> Iterator[bytes]:
    """Yield the main path: one message a line for files of lines, else one document on one line."""
    layout = kept_of(transcript.metadata, FORMAT, KeptLayout)
    messages = encode_messages(transcript.messages, verbatim=transcript.format == FORMAT)
    if transcript.format == FORMAT and not layout:
        yield from (_line(message) for message in messages)
    elif layout.get("layout") == "list":
        yield _line(messages)
    else:
        tools = {"tools": encode_tools(transcript.tools)} if transcript.tools else {}
        yield _line({**tools, **layout.get("fields", {}), "messages": messages})


def _line(value: Any) -> bytes:
    return js_json(value).encode("utf-8", "replace") + b"\n"
