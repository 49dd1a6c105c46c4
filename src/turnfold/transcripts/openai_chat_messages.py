"""One message of OpenAI Chat Completions, in and out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, assert_never

import msgspec
from msgspec.structs import replace

from turnfold.messages.canonical import js_json
from turnfold.messages.model import Image, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult, Usage
from turnfold.transcripts.naming import Namer
from turnfold.transcripts.reading import count_of, extras, keep, text_of
from turnfold.transcripts.wire import CallIds, kept_of, opaque_object, tool_name

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


class _Kept(msgspec.Struct):
    """What a message keeps under `metadata["openai_chat"]`."""

    role: str = ""
    form: str = ""
    id: bool = False
    name: bool = False
    images: bool = False
    function_call: bool = False
    custom: list[str] = []
    fields: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    calls: dict[str, dict[str, Any]] = {}


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


def encode_messages(
    messages: Iterable[Message], *, reasoning: bool = False, verbatim: bool = False
) -> list[dict[str, Any]]:
    """Return messages as the `messages` of a request.

    With `reasoning`, reasoning that came from this format is sent back as `reasoning_content`: some servers require that,
    others refuse it. With `verbatim`, everything that was read comes back, ids and unknown fields included: for files, and
    for passing a client's own request on. Images of tool results follow in a user message: tool messages hold text only.
    """
    out: list[dict[str, Any]] = []
    images: list[Image] = []
    ids = CallIds()
    for message in messages:
        writer = _Writer(message, ids, reasoning=reasoning or verbatim, verbatim=verbatim)
        if message.role == "tool":
            out.extend(writer.result(result) for result in message.results)
            images.extend(writer.moved_images())
            continue
        out.extend(_images_message(images))
        images = []
        out.append(writer.message())
    return [*out, *_images_message(images)]


def _images_message(images: list[Image]) -> list[dict[str, Any]]:
    if not images:
        return []
    parts = [{"type": "text", "text": IMAGES_FOLLOW}, *(_encode_image(image) for image in images)]
    return [{"role": "user", "content": parts}]


class _Writer:
    """Writes one message; `kept` is what was kept of fields that turnfold has no place for."""

    def __init__(self, source: Message, ids: CallIds, *, reasoning: bool, verbatim: bool) -> None:
        self.kept = kept_of(source.metadata, FORMAT, _Kept)
        self.source, self.ids, self.reasoning, self.verbatim = source, ids, reasoning, verbatim

    def head(self) -> dict[str, Any]:
        role = {"role": self.kept.get("role", self.source.role)}
        return {"id": self.source.id, **role} if self.verbatim and self.kept.get("id") else role

    def rest(self) -> dict[str, Any]:
        return dict(self.kept.get("fields", {})) if self.verbatim else {}

    def message(self) -> dict[str, Any]:
        value = self.head()
        calls = [self.call(call) for call in self.source.calls] if self.source.role == "assistant" else []
        content = self.content(self.source.parts, empty=None if calls else "")
        if self.kept.get("form") != "absent" or content or not (calls or self.verbatim):
            value["content"] = content
        name = self.source.metadata.get("name")
        if isinstance(name, str) and _NAME.fullmatch(name):
            value["name"] = name
        if self.source.role == "assistant":
            value.update(self.assistant_fields())
        if calls and self.kept.get("function_call"):
            value["function_call"] = calls.pop(0)["function"]
        if calls:
            value["tool_calls"] = calls
        return {**value, **self.rest()}

    def assistant_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        own = [part.text for part in self.source.parts if isinstance(part, Reasoning) and part.provider == FORMAT]
        if self.reasoning and own:
            fields["reasoning_content"] = "".join(own)
        for part in self.source.parts:
            known = opaque_object(part, FORMAT) if isinstance(part, Opaque) else None
            if known and known.keys() == {"refusal"}:
                fields.update(known)
        return fields

    def result(self, result: ToolResult) -> dict[str, Any]:
        content = self.content(result.content, empty="")
        if self.kept.get("role") == "function":
            return {**self.head(), "name": result.name or "", "content": content, **self.rest()}
        value = {**self.head(), "tool_call_id": self.ids.result(result.call_id), "content": content}
        if self.verbatim and result.name is not None and self.kept.get("name"):
            value["name"] = result.name
        return {**value, **self.rest()}

    def call(self, call: ToolCall) -> dict[str, Any]:
        rest = self.kept.get("calls", {}).get(call.id, {})
        value: dict[str, Any] = {"id": self.ids.call(call.id)}
        if call.id in self.kept.get("custom", ()):
            return {
                **value,
                "type": "custom",
                "custom": {"name": tool_name(call.name), "input": call.arguments},
                **rest,
            }
        return {
            **value,
            "type": "function",
            "function": {"name": tool_name(call.name), "arguments": call.arguments},
            **rest,
        }

    def moved_images(self) -> list[Image]:
        """Return the images of tool results, unless the client itself had them in a tool message."""
        if self.verbatim and self.kept.get("images"):
            return []
        return [part for result in self.source.results for part in result.content if isinstance(part, Image)]

    def content(self, parts: Iterable[Part], *, empty: str | None) -> Any:
        shown = [item for part in parts for item in self.part(part)]
        if self.verbatim:
            kept = self.kept.get("parts", {})
            shown = [{**item, **kept.get(str(index), {})} for index, item in enumerate(shown)]
        if self.kept.get("form") == "list" and (shown or self.verbatim):
            return shown
        if not shown:
            return None if self.verbatim and self.kept.get("form") == "null" else empty
        if len(shown) == 1 and shown[0].keys() == {"type", "text"}:
            return shown[0]["text"]
        return shown

    def part(self, part: Part) -> Iterator[dict[str, Any]]:
        match part:
            case Text(text=text):
                yield {"type": "text", "text": text}
            case Image():
                in_place = self.source.role == "user" or (self.verbatim and self.kept.get("images"))
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
