"""One message of OpenAI Chat Completions, in and out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, assert_never

from msgspec.structs import replace

from turnfold.messages.canonical import js_json
from turnfold.messages.model import Image, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult, Usage
from turnfold.transcripts.naming import Namer
from turnfold.transcripts.reading import count_of, extras, keep, text_of
from turnfold.transcripts.wire import call_id, opaque_object

FORMAT: Final = "openai_chat"
_ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_KNOWN: Final = frozenset({"id", "role", "content", "name"})
_KNOWN_BY_ROLE: Final = {
    "assistant": _KNOWN | {"tool_calls", "function_call", "reasoning_content", "refusal"},
    "tool": _KNOWN | {"tool_call_id"},
}
_NAME: Final = re.compile(r"[^\s<|\\/>]{1,64}")
_DATA_URL: Final = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)
IMAGES_FOLLOW: Final = "Images that the tool results above refer to:"
"""Opens the user message that carries images of tool results, since tool messages hold text only (API reference)."""


class BadMessage(ValueError):
    """A message that cannot be taken; the text says why."""


class Reader:
    """Reads the messages of one conversation in order; legacy function results need the call before them."""

    def __init__(self) -> None:
        self._function_call = ""
        self._count = 0

    def message(self, value: Any, namer: Namer) -> Message:
        """Return one message, named by its own id or by `namer`. Raises BadMessage."""
        if not isinstance(value, dict):
            raise BadMessage("it is not a message object")
        role = value.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            raise BadMessage(f"the role {role!r} is unknown (known: {', '.join(_ROLES)})")
        self._count += 1
        namespace: dict[str, Any] = {}
        fields = extras(value, _KNOWN_BY_ROLE.get(_ROLES[role], _KNOWN))
        if fields:
            namespace["fields"] = fields
        parts = tuple(
            self._tool(value, role, namespace) if _ROLES[role] == "tool" else self._parts(value, role, namespace)
        )
        if role in ("developer", "function"):
            namespace["role"] = role
        return self._named(value, namer, Message(id="", role=_ROLES[role], parts=parts), namespace)

    def _named(self, value: dict[str, Any], namer: Namer, message: Message, namespace: dict[str, Any]) -> Message:
        name, own = namer.name(message), text_of(value.get("id"))
        if own:
            namespace["id"] = True
        metadata: dict[str, Any] = {}
        if text_of(value.get("name")) and message.role != "tool":
            metadata["name"] = value["name"]
        if namespace:
            metadata[FORMAT] = namespace
        return replace(message, id=own or name, metadata=metadata)

    def _tool(self, value: dict[str, Any], role: str, namespace: dict[str, Any]) -> Iterator[Part]:
        given = self._function_call if role == "function" else value.get("tool_call_id")
        if not isinstance(given, str) or not given:
            raise BadMessage(
                "a tool message has no tool_call_id" if role == "tool" else "a function result has no call"
            )
        content = tuple(_content(value, namespace))
        if any(isinstance(part, Image) for part in content):
            namespace["images"] = True
        if text_of(value.get("name")):
            namespace["name"] = True
        yield ToolResult(call_id=given, content=content, name=text_of(value.get("name")))

    def _parts(self, value: dict[str, Any], role: str, namespace: dict[str, Any]) -> Iterator[Part]:
        if role == "assistant" and isinstance(value.get("reasoning_content"), str):
            yield Reasoning(text=value["reasoning_content"], provider=FORMAT)
        yield from _content(value, namespace)
        if role != "assistant":
            return
        if isinstance(value.get("refusal"), str):
            yield Opaque(source=FORMAT, payload=js_json({"refusal": value["refusal"]}))
        elif "refusal" in value:
            namespace.setdefault("fields", {})["refusal"] = keep(value["refusal"])
        yield from self._calls(value, namespace)

    def _calls(self, value: dict[str, Any], namespace: dict[str, Any]) -> Iterator[ToolCall]:
        legacy = value.get("function_call")
        if isinstance(legacy, dict):
            self._function_call = f"function_{self._count}"
            namespace["function_call"] = True
            yield _call({"id": self._function_call, "function": legacy}, namespace)
        calls = value.get("tool_calls")
        if calls is not None and not isinstance(calls, list):
            raise BadMessage("tool_calls is not a list")
        for item in calls or ():
            yield _call(item, namespace)


def _call(item: Any, namespace: dict[str, Any]) -> ToolCall:
    match item:
        case {"id": str() as given, "function": {"name": str() as name, **function}}:
            arguments, known = function.get("arguments", ""), "function"
        case {"id": str() as given, "custom": {"name": str() as name, "input": str() as arguments, **function}}:
            known = "custom"
            namespace.setdefault("custom", []).append(given)
        case _:
            raise BadMessage("a tool call has no id, name and arguments")
    rest = extras(item, frozenset({"id", "type", known}))
    if rest:
        namespace.setdefault("calls", {})[given] = rest
    return ToolCall(id=given, name=name, arguments=arguments if isinstance(arguments, str) else js_json(arguments))


def _content(value: dict[str, Any], namespace: dict[str, Any]) -> Iterator[Text | Image | Opaque]:
    content = value.get("content")
    if isinstance(content, str):
        yield Text(text=content)
    elif isinstance(content, list):
        if len(content) == 0 or (
            len(content) == 1 and isinstance(content[0], dict) and content[0].get("type") == "text"
        ):
            namespace["form"] = "list"
        for index, part in enumerate(content):
            yield _part(index, part, namespace)
    elif content is None:
        if "content" not in value:
            namespace["form"] = "absent"
        elif value.get("role") != "assistant" or not (value.get("tool_calls") or value.get("function_call")):
            namespace["form"] = "null"
    else:
        raise BadMessage("its content is not text or a list of parts")


def _part(index: int, part: Any, namespace: dict[str, Any]) -> Text | Image | Opaque:
    match part:
        case {"type": "text", "text": str() as text}:
            rest = extras(part, frozenset({"type", "text"}))
            found: Text | Image = Text(text=text)
        case {"type": "image_url", "image_url": {"url": str() as url, **inner}} if not inner.keys() - {"detail"}:
            rest = extras(part, frozenset({"type", "image_url"}))
            found = image_of(url, text_of(inner.get("detail")))
        case {"type": str()}:
            return Opaque(source=FORMAT, payload=js_json(part))
        case _:
            raise BadMessage(f"content part {index + 1} has no known type")
    if rest:
        namespace.setdefault("parts", {})[str(index)] = rest
    return found


def image_of(url: str, detail: str | None) -> Image:
    """Return the image at a URL; a base64 data URL gives its data."""
    match = _DATA_URL.fullmatch(url)
    if match:
        return Image(media_type=match[1], data=match[2], detail=detail)
    return Image(url=url, detail=detail)


def image_url(image: Image) -> str:
    """Return the URL of an image, a data URL for one given by its data."""
    if image.data is not None:
        return f"data:{image.media_type or 'image/png'};base64,{image.data}"
    return image.url or ""


def decode_usage(value: Any) -> Usage | None:
    """Return a completion's usage. OpenAI counts cached tokens within the prompt; turnfold counts them apart."""
    if not isinstance(value, dict):
        return None
    details = value.get("prompt_tokens_details")
    cached = count_of(details.get("cached_tokens")) if isinstance(details, dict) else 0
    prompt = count_of(value.get("prompt_tokens"))
    return Usage(
        input=max(0, prompt - cached),
        output=count_of(value.get("completion_tokens")),
        cache_read=min(cached, prompt),
        total=count_of(value.get("total_tokens")),
    )


def encode_messages(messages: Iterable[Message], *, reasoning: bool = False) -> list[dict[str, Any]]:
    """Return messages as a request's `messages`.

    With `reasoning`, reasoning that came from this format is sent back as `reasoning_content`; some servers require that
    and others refuse it. Images of tool results follow in a user message, since tool messages hold text only.
    """
    out: list[dict[str, Any]] = []
    images: list[Image] = []
    for message in messages:
        if message.role == "tool":
            for result in message.results:
                out.append(_encode_result(result, message))
                images.extend(_moved_images(result, message))
            continue
        out.extend(_images_message(images))
        images = []
        out.append(_encode(message, reasoning=reasoning))
    return [*out, *_images_message(images)]


def _moved_images(result: ToolResult, message: Message) -> list[Image]:
    if _namespace(message).get("images"):
        return []
    return [part for part in result.content if isinstance(part, Image)]


def _images_message(images: list[Image]) -> list[dict[str, Any]]:
    if not images:
        return []
    parts = [{"type": "text", "text": IMAGES_FOLLOW}, *(_encode_image(image) for image in images)]
    return [{"role": "user", "content": parts}]


def _namespace(message: Message) -> dict[str, Any]:
    found = message.metadata.get(FORMAT)
    return found if isinstance(found, dict) else {}


def _head(message: Message, role: str) -> dict[str, Any]:
    return {"id": message.id, "role": role} if _namespace(message).get("id") else {"role": role}


def _encode(message: Message, *, reasoning: bool) -> dict[str, Any]:
    namespace = _namespace(message)
    value = _head(message, namespace.get("role", message.role))
    calls = [_encode_call(call, namespace) for call in message.calls] if message.role == "assistant" else []
    content = _encode_content(message.parts, message, empty=None if calls else "")
    if namespace.get("form") != "absent" or content:
        value["content"] = content
    name = message.metadata.get("name")
    if isinstance(name, str) and _NAME.fullmatch(name):
        value["name"] = name
    if message.role == "assistant":
        value.update(_assistant_fields(message, reasoning=reasoning))
    if calls and namespace.get("function_call"):
        value["function_call"] = calls.pop(0)["function"]
    if calls:
        value["tool_calls"] = calls
    return {**value, **namespace.get("fields", {})}


def _assistant_fields(message: Message, *, reasoning: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    own = [part.text for part in message.parts if isinstance(part, Reasoning) and part.provider == FORMAT]
    if reasoning and own:
        fields["reasoning_content"] = "".join(own)
    for part in message.parts:
        known = opaque_object(part, FORMAT) if isinstance(part, Opaque) else None
        if known and known.keys() == {"refusal"}:
            fields.update(known)
    return fields


def _encode_result(result: ToolResult, message: Message) -> dict[str, Any]:
    namespace = _namespace(message)
    content = _encode_content(result.content, message, empty="")
    if namespace.get("role") == "function":
        head: dict[str, Any] = {**_head(message, "function"), "name": result.name or "", "content": content}
        return {**head, **namespace.get("fields", {})}
    value = {**_head(message, "tool"), "tool_call_id": call_id(result.call_id), "content": content}
    if result.name is not None and namespace.get("name"):
        value["name"] = result.name
    return {**value, **namespace.get("fields", {})}


def _encode_call(call: ToolCall, namespace: dict[str, Any]) -> dict[str, Any]:
    rest = namespace.get("calls", {}).get(call.id, {})
    value: dict[str, Any] = {"id": call_id(call.id)}
    if call.id in namespace.get("custom", ()):
        return {**value, "type": "custom", "custom": {"name": call.name, "input": call.arguments}, **rest}
    return {**value, "type": "function", "function": {"name": call.name, "arguments": call.arguments}, **rest}


def _encode_content(parts: Iterable[Part], message: Message, *, empty: str | None) -> Any:
    namespace = _namespace(message)
    shown = [item for part in parts for item in _encode_part(part, message)]
    kept = namespace.get("parts", {})
    shown = [{**item, **kept.get(str(index), {})} for index, item in enumerate(shown)]
    if namespace.get("form") == "list":
        return shown
    if not shown:
        return None if namespace.get("form") == "null" else empty
    if len(shown) == 1 and shown[0].keys() == {"type", "text"}:
        return shown[0]["text"]
    return shown


def _encode_part(part: Part, message: Message) -> Iterator[dict[str, Any]]:
    match part:
        case Text(text=text):
            yield {"type": "text", "text": text}
        case Image():
            in_place = message.role == "user" or _namespace(message).get("images")
            yield _encode_image(part) if in_place else {"type": "text", "text": "[image]"}
        case Opaque():
            known = opaque_object(part, FORMAT)
            if known and "type" in known:
                yield known
        case Reasoning() | ToolCall() | ToolResult():
            pass
        case _ as never:
            assert_never(never)


def _encode_image(image: Image) -> dict[str, Any]:
    inner = {"url": image_url(image)}
    if image.detail is not None:
        inner["detail"] = image.detail
    return {"type": "image_url", "image_url": inner}
