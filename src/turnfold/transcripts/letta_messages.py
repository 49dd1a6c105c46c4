"""One message of the letta-code local format, in and out.

Fields that turnfold has no place for are kept under `metadata["letta"]`, so that what was read can be written again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from turnfold.messages.canonical import js_json
from turnfold.messages.model import (
    Image,
    Kind,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from turnfold.transcripts.reading import count_of, epoch_ms, extras, keep, text_of
from turnfold.transcripts.wire import json_object, kept_of, opaque_object

FORMAT: Final = "letta"
LETTA_ROLES: Final[dict[str, Role]] = {
    "user": "user",
    "assistant": "assistant",
    "toolResult": "tool",
    "system": "system",
}
_KNOWN: Final = {
    "user": frozenset({"id", "role", "content", "timestamp", "metadata"}),
    "system": frozenset({"id", "role", "content", "timestamp", "metadata"}),
    "assistant": frozenset({"id", "role", "content", "timestamp", "metadata", "model", "usage", "stopReason"}),
    "toolResult": frozenset({"id", "role", "content", "timestamp", "metadata", "toolCallId", "toolName", "isError"}),
}
_USAGE: Final = {
    "input": "input",
    "output": "output",
    "cacheRead": "cache_read",
    "cacheWrite": "cache_write",
    "totalTokens": "total",
}


class _Kept(msgspec.Struct):
    """What a message keeps under `metadata["letta"]`."""

    form: str = ""
    no_id: bool = False
    row_time: bool = False
    message_id: str = ""
    timestamp: Any = None
    fields: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    usage: dict[str, Any] = {}
    row: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}


class BadRow(ValueError):
    """A row that cannot be taken; the text says why."""


def decode_message(value: Any) -> Message:
    """Return one bare message; its id is empty when it has none. Raises BadRow."""
    if not isinstance(value, dict):
        raise BadRow("it is not a message object")
    role = value.get("role")
    if not isinstance(role, str) or role not in LETTA_ROLES:
        raise BadRow(f"the role {role!r} is unknown (known: {', '.join(LETTA_ROLES)})")
    reader = _Reader(value, role)
    metadata, kind = reader.metadata()
    return Message(
        id=text_of(value.get("id")) or "",
        role=LETTA_ROLES[role],
        parts=reader.message_parts(),
        kind=kind,
        created_at=epoch_ms(value.get("timestamp")),
        usage=reader.usage(),
        stop_reason=text_of(value.get("stopReason")) if role == "assistant" else None,
        model=text_of(value.get("model")) if role == "assistant" else None,
        metadata=_namespaced(metadata, reader.namespace),
    )


def _namespaced(metadata: dict[str, Any], namespace: dict[str, Any]) -> dict[str, Any]:
    return {**metadata, "letta": namespace} if namespace else metadata


class _Reader:
    """Reads one message object; what has no place in a Message gathers in `namespace`."""

    def __init__(self, value: dict[str, Any], role: str) -> None:
        self.value, self.role = value, role
        self.namespace: dict[str, Any] = {}
        fields = extras(value, _KNOWN[role])
        if fields:
            self.namespace["fields"] = fields
        if "timestamp" in value and not isinstance(value["timestamp"], int):
            self.namespace["timestamp"] = keep(value["timestamp"])

    def metadata(self) -> tuple[dict[str, Any], Kind]:
        given = self.value.get("metadata")
        if not isinstance(given, dict):
            return {}, "message"
        rest = {key: keep(item) for key, item in given.items() if key != "compaction"}
        if rest:
            self.namespace["metadata"] = rest
        if not isinstance(given.get("compaction"), dict):
            return {}, "message"
        return {"compaction": keep(given["compaction"])}, "summary"

    def usage(self) -> Usage | None:
        given = self.value.get("usage")
        if self.role != "assistant" or not isinstance(given, dict):
            return None
        rest = extras(given, frozenset(_USAGE))
        if rest:
            self.namespace["usage"] = rest
        return Usage(**{field: count_of(given.get(key)) for key, field in _USAGE.items()})

    def message_parts(self) -> tuple[Part, ...]:
        if self.role != "toolResult":
            return tuple(self.parts())
        call_id = self.value.get("toolCallId")
        if not isinstance(call_id, str):
            raise BadRow("a tool result has no toolCallId")
        content = tuple(part for part in self.parts() if isinstance(part, Text | Image | Opaque))
        is_error = self.value.get("isError") is True
        name = text_of(self.value.get("toolName"))
        return (ToolResult(call_id=call_id, content=content, is_error=is_error, name=name),)

    def parts(self) -> Iterator[Part]:
        content = self.value.get("content")
        if isinstance(content, str):
            if self.role not in ("user", "system"):
                self.namespace["form"] = "string"
            yield Text(text=content)
            return
        if not isinstance(content, list):
            raise BadRow(f"its content is {_kind(content)}, not text or a list of parts")
        if self.role in ("user", "system") and _one_text(content):
            self.namespace["form"] = "list"
        for index, part in enumerate(content):
            yield self.part(index, part)

    def part(self, index: int, part: Any) -> Part:
        match part:
            case {"type": "text", "text": str() as text}:
                self.keep_rest(index, part, "type", "text")
                return Text(text=text)
            case {"type": "thinking", "thinking": str() as text}:
                rest = extras(part, frozenset({"type", "thinking"}))
                return Reasoning(text=text, payload=js_json(rest) if rest else None, provider=FORMAT if rest else None)
            case {"type": "image", "data": str() as data}:
                self.keep_rest(index, part, "type", "data", "mimeType")
                return Image(media_type=text_of(part.get("mimeType")), data=data)
            case {"type": "toolCall", "id": str() as call_id, "name": str() as name} if self.role == "assistant":
                self.keep_rest(index, part, "type", "id", "name", "arguments")
                return ToolCall(id=call_id, name=name, arguments=js_json(js_value(part.get("arguments", {}))))
            case {"type": str()}:
                return Opaque(source=FORMAT, payload=js_json(part))
            case _:
                raise BadRow(f"part {index + 1} is {_kind(part)} without a known type")

    def keep_rest(self, index: int, part: dict[str, Any], *known: str) -> None:
        rest = extras(part, frozenset(known))
        if rest:
            self.namespace.setdefault("parts", {})[str(index)] = rest


def _kind(value: Any) -> str:
    names = {"dict": "an object", "list": "a list", "str": "text", "NoneType": "missing", "bool": "true or false"}
    return names.get(type(value).__name__, "a number")


def _one_text(content: list[Any]) -> bool:
    return len(content) == 1 and isinstance(content[0], dict) and content[0].get("type") == "text"


_INDEX_KEYS: Final = 2**32 - 1


def js_value(value: Any) -> Any:
    """Return a value as JavaScript holds it: keys that are array indexes first, numbers in double precision."""
    match value:
        case bool():
            return value
        case int():
            return value if abs(value) <= 2**53 else float(value)
        case list():
            return [js_value(item) for item in value]
        case dict():
            indexes = sorted((key for key in value if _is_index(key)), key=int)
            return {key: js_value(value[key]) for key in [*indexes, *(key for key in value if not _is_index(key))]}
        case _:
            return value


def _is_index(key: str) -> bool:
    return key.isascii() and key.isdigit() and len(key) <= 10 and str(int(key)) == key and int(key) < _INDEX_KEYS


def namespace_of(message: Message) -> dict[str, Any]:
    """Return what a message read from this format kept for writing it again."""
    return kept_of(message.metadata, FORMAT, _Kept)


def encode_message(message: Message) -> dict[str, Any]:
    """Return one bare message object, keys in the order that letta-code writes them."""
    writer = _Writer(message)
    return {"assistant": writer.assistant, "tool": writer.tool}.get(message.role, writer.user)()


class _Writer:
    """Writes one message object from a Message and the fields kept with it."""

    def __init__(self, message: Message) -> None:
        self.message, self.namespace = message, namespace_of(message)
        self.fields = dict(self.namespace.get("fields", {}))
        self.head = {} if self.namespace.get("no_id") else {"id": message.id}

    def user(self) -> dict[str, Any]:
        return {**self.head, "role": self.message.role, "content": self.content(self.message.parts), **self.tail()}

    def assistant(self) -> dict[str, Any]:
        value = {**self.head, "role": "assistant", "content": self.content(self.message.parts)}
        for name in ("api", "provider"):
            if name in self.fields:
                value[name] = self.fields.pop(name)
        optional = {"model": self.message.model, "usage": self.usage(), "stopReason": self.message.stop_reason}
        return {**value, **{key: item for key, item in optional.items() if item is not None}, **self.tail()}

    def tool(self) -> dict[str, Any]:
        result = next(iter(self.message.results), ToolResult(call_id=""))
        value = {**self.head, "role": "toolResult", "toolCallId": result.call_id}
        if result.name is not None:
            value["toolName"] = result.name
        value["content"] = self.content(result.content)
        if "details" in self.fields:
            value["details"] = self.fields.pop("details")
        return {**value, "isError": result.is_error, **self.tail()}

    def tail(self) -> dict[str, Any]:
        value: dict[str, Any] = {}
        if "timestamp" in self.namespace:
            value["timestamp"] = self.namespace["timestamp"]
        elif self.message.created_at is not None and not self.namespace.get("row_time"):
            value["timestamp"] = self.message.created_at
        metadata = {key: self.message.metadata[key] for key in ("compaction",) if key in self.message.metadata}
        metadata.update(self.namespace.get("metadata", {}))
        if metadata:
            value["metadata"] = metadata
        return {**value, **self.fields}

    def usage(self) -> dict[str, Any] | None:
        usage = self.message.usage
        if usage is None:
            return None
        return {**{key: getattr(usage, field) for key, field in _USAGE.items()}, **self.namespace.get("usage", {})}

    def content(self, parts: tuple[Part, ...]) -> Any:
        user = self.message.role in ("user", "system")
        form = self.namespace.get("form", "string" if user else "list")
        if form == "string" and len(parts) == 1 and isinstance(parts[0], Text):
            return parts[0].text
        kept = self.namespace.get("parts", {})
        return [{**_encode_part(part), **kept.get(str(index), {})} for index, part in enumerate(parts)]


def _encode_part(part: Part) -> dict[str, Any]:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Reasoning(text=text, payload=payload, provider=provider):
            rest = (json_object(payload) if provider == FORMAT else None) or {}
            return {"type": "thinking", "thinking": text, **rest}
        case ToolCall(id=call_id, name=name, arguments=arguments):
            return {"type": "toolCall", "id": call_id, "name": name, "arguments": _arguments(arguments)}
        case Image(media_type=media_type, data=data, url=url):
            value = {"type": "image", "mimeType": media_type, "data": data, "url": url}
            return {key: item for key, item in value.items() if item is not None}
        case Opaque(source=source):
            return opaque_object(part, FORMAT) or {"type": "text", "text": f"[{source} content]"}
        case ToolResult():
            return {"type": "text", "text": "\n".join(item.text for item in part.content if isinstance(item, Text))}


def _arguments(arguments: str) -> Any:
    try:
        return json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        return arguments
