"""Items of the OpenAI Responses API, in and out.

A model's run of items (reasoning, message, calls) is one assistant message; each output is a `tool` message. Reasoning keeps its
whole item, so that it can go back untouched, right before the item that it led to: the API refuses it elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, assert_never

import msgspec

from turnfold.messages.canonical import js_json
from turnfold.messages.model import Image, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from turnfold.transcripts.openai_chat_messages import image_of, image_url
from turnfold.transcripts.reading import extras, keep, text_of
from turnfold.transcripts.wire import CallIds, json_object, kept_of, opaque_object, tool_name

FORMAT: Final = "openai_responses"
_ROLES: Final[dict[str, Role]] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_OUTPUTS: Final = {"function_call_output": "function_call", "custom_tool_call_output": "custom_tool_call"}
_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
ITEM_TYPES: Final = frozenset({"message", "reasoning", *_CALLS, *_OUTPUTS})


class _KeptItem(msgspec.Struct):
    """One message item among the items of an assistant message: its content begins at a part and has `size` parts."""

    size: int
    form: str = ""
    easy: bool = False
    item: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}


class _Kept(msgspec.Struct):
    """What a message keeps under `metadata["openai_responses"]`."""

    form: str = ""
    role: str = ""
    type: Literal["", "custom_tool_call_output"] = ""
    easy: bool = False
    item: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    calls: dict[str, dict[str, Any]] = {}
    messages: dict[str, _KeptItem] = {}


class BadItem(ValueError):
    """An item that cannot be taken; the text says why."""


# In


class ItemReader:
    """Turns items into messages in order. `take` may give a message that is now complete, `flush` gives the last one."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._kept: dict[str, Any] = {}
        self._ends: set[int] = set()

    def take(self, item: Any) -> Iterator[Message]:
        """Yield the messages that this item completes, without ids. Raises BadItem."""
        if not isinstance(item, dict):
            raise BadItem("it is not an item object")
        kind = item.get("type", "message" if "role" in item else None)
        if kind == "message" and item.get("role") != "assistant":
            message = _plain_message(item)
            yield from self.flush()
            yield message
        elif isinstance(kind, str) and kind in _OUTPUTS:
            message = _output(item, kind)
            yield from self.flush()
            yield message
        else:
            self._take_part(item, kind)

    def flush(self) -> Iterator[Message]:
        """Yield the assistant message gathered so far, if any."""
        if self._parts or self._kept:
            metadata = {FORMAT: self._kept} if self._kept else {}
            yield Message(id="", role="assistant", parts=tuple(self._parts), metadata=metadata)
        self._parts, self._kept, self._ends = [], {}, set()

    def _take_part(self, item: dict[str, Any], kind: Any) -> None:
        match kind:
            case "message":
                self._take_message(item)
            case "reasoning":
                self._parts.append(Reasoning(text=_summary(item), payload=js_json(keep(item)), provider=FORMAT))
            case "function_call" | "custom_tool_call":
                self._take_call(item, kind)
            case str():
                self._parts.append(Opaque(source=FORMAT, payload=js_json(item)))
            case _:
                raise BadItem("an item has no type and no role")

    def _take_message(self, item: dict[str, Any]) -> None:
        parts, kept = _content(item)
        kept.update(_around(item))
        at = len(self._parts)
        follows = at in self._ends  # two message items in a row
        if kept or follows or len(parts) != 1:
            self._kept.setdefault("messages", {})[str(at)] = {"size": len(parts), **kept}
        self._parts.extend(parts)
        self._ends.add(len(self._parts))

    def _take_call(self, item: dict[str, Any], kind: str) -> None:
        given, name, arguments = item.get("call_id"), item.get("name"), item.get(_CALLS[kind])
        if not isinstance(given, str) or not isinstance(name, str):
            raise BadItem(f"a {kind} has no call_id or no name")
        rest = extras(item, frozenset({"type", "call_id", "name", _CALLS[kind]}))
        if kind != "function_call":
            rest["type"] = kind
        if rest:
            self._kept.setdefault("calls", {})[given] = rest
        text = arguments if isinstance(arguments, str) else js_json(arguments)
        self._parts.append(ToolCall(id=given, name=name, arguments=text))


def _summary(item: dict[str, Any]) -> str:
    """Return the readable text of a reasoning item."""
    texts = [
        part["text"]
        for field in ("summary", "content")
        for part in (item[field] if isinstance(item.get(field), list) else ())
        if isinstance(part, dict) and isinstance(part.get("text"), str)
    ]
    return "\n\n".join(texts)


def _plain_message(item: dict[str, Any]) -> Message:
    role = item.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise BadItem(f"the role {role!r} is unknown (known: {', '.join(_ROLES)})")
    parts, kept = _content(item)
    kept.update(_around(item))
    if _ROLES[role] == "system":
        kept["role"] = role  # tells it from a request's instructions
    return Message(id="", role=_ROLES[role], parts=parts, metadata={FORMAT: kept} if kept else {})


def _around(item: dict[str, Any]) -> dict[str, Any]:
    """Return what a message item has around its content: other fields, or no type."""
    rest = extras(item, frozenset({"type", "role", "content"}))
    return {**({} if "type" in item else {"easy": True}), **({"item": rest} if rest else {})}


def _content(item: dict[str, Any]) -> tuple[tuple[Part, ...], dict[str, Any]]:
    """Return the parts of a message item, and what a Message has no place for."""
    content = item.get("content")
    kept: dict[str, Any] = {}
    is_model = item.get("role") == "assistant"
    if isinstance(content, str):
        if is_model:
            kept["form"] = "string"
        return (Text(text=content),), kept
    if not isinstance(content, list):
        raise BadItem("its content is not text or a list of parts")
    if not is_model and len(content) == 1 and isinstance(content[0], dict) and content[0].get("type") == "input_text":
        kept["form"] = "list"
    parts = tuple(_part(index, part, kept) for index, part in enumerate(content))
    return parts, kept


def _part(index: int, part: Any, kept: dict[str, Any]) -> Text | Image | Opaque:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise BadItem(f"content part {index + 1} has no type")
    kind = part["type"]
    rest: dict[str, Any] = {}
    found: Text | Image | Opaque = Opaque(source=FORMAT, payload=js_json(part))
    if kind in ("input_text", "output_text", "text") and isinstance(part.get("text"), str):
        rest = extras(part, frozenset({"type", "text"}))
        found = Text(text=part["text"])
    elif kind == "input_image" and isinstance(part.get("image_url"), str):
        rest = extras(part, frozenset({"type", "image_url", "detail"}))
        found = image_of(part["image_url"], text_of(part.get("detail")))
    if rest:
        kept.setdefault("parts", {})[str(index)] = rest
    return found


def _output(item: dict[str, Any], kind: str) -> Message:
    given, output = item.get("call_id"), item.get("output")
    if not isinstance(given, str) or not given:
        raise BadItem("an output has no call_id")
    kept: dict[str, Any] = {}
    if isinstance(output, list):
        content = tuple(_part(index, part, kept) for index, part in enumerate(output))
        kept["form"] = "list"
    else:
        text = output if isinstance(output, str) else js_json(output)
        content = (Text(text=text),)
    rest = extras(item, frozenset({"type", "call_id", "output"}))
    if kind != "function_call_output":
        kept["type"] = kind
    if rest:
        kept["item"] = rest
    return Message(
        id="", role="tool", parts=(ToolResult(call_id=given, content=content),), metadata={FORMAT: kept} if kept else {}
    )


# Out


def encode_items(messages: Iterable[Message], *, store: bool = False, verbatim: bool = False) -> list[dict[str, Any]]:
    """Return messages as the items of a request.

    Reasoning goes back right before the item that it led to, and only where the API can read it: with its encrypted content, or
    with `store` by its id. Ids of other items are left out: the API refuses one whose reasoning is missing. With `verbatim`,
    everything that was read comes back.
    """
    ids = CallIds()
    return [item for message in messages for item in _Writer(message, ids, store=store, verbatim=verbatim).items()]


class _Writer:
    """Writes the items of one message."""

    def __init__(self, source: Message, ids: CallIds, *, store: bool, verbatim: bool) -> None:
        self.kept = kept_of(source.metadata, FORMAT, _Kept)
        self.source, self.ids, self.store, self.verbatim = source, ids, store, verbatim

    def items(self) -> Iterator[dict[str, Any]]:
        match self.source.role:
            case "tool":
                yield from (self.output(result) for result in self.source.results)
            case "assistant":
                yield from self.model_items() if self.verbatim else paired(list(self.model_items()))
            case "user" | "system":
                yield self.plain()
            case _ as never:
                assert_never(never)

    def plain(self) -> dict[str, Any]:
        role = self.kept.get("role", self.source.role)
        content = [item for part in self.source.parts for item in self.part(part, "input_text")]
        return self.message(role, content, self.kept)

    def message(self, role: str, content: list[dict[str, Any]], kept: dict[str, Any]) -> dict[str, Any]:
        head = {} if self.verbatim and kept.get("easy") else {"type": "message"}
        if self.verbatim:
            rest = kept.get("parts", {})
            content = [{**item, **rest.get(str(index), {})} for index, item in enumerate(content)]
        wants_text = kept.get("form") == "string" if role == "assistant" else kept.get("form") != "list"
        alone = len(content) == 1 and content[0].keys() == {"type", "text"}
        shown: Any = content[0]["text"] if wants_text and alone else content or ""
        if self.verbatim and not content and not kept.get("form"):
            shown = []
        return {**head, "role": role, "content": shown, **(kept.get("item", {}) if self.verbatim else {})}

    def model_items(self) -> Iterator[dict[str, Any]]:
        """Yield the items of an assistant message in order."""
        for start, end, kept in self.runs():
            if kept is None:
                yield from self.model_item(self.source.parts[start])
                continue
            content = [item for part in self.source.parts[start:end] for item in self.part(part, "output_text")]
            if content or self.verbatim:
                yield self.message("assistant", content, kept)

    def runs(self) -> Iterator[tuple[int, int, dict[str, Any] | None]]:
        """Yield (start, end, kept) for each item; content in a row is one message item unless it was read as several."""
        read, parts, index = dict(self.kept.get("messages", {})), self.source.parts, 0
        while index < len(parts) or str(index) in read:
            kept = read.pop(str(index), None)
            if kept is not None:
                end = min(len(parts), index + max(0, kept.get("size", 0)))
                yield index, end, kept
            elif _is_content(parts[index]):
                ends = (at for at in range(index + 1, len(parts)) if str(at) in read or not _is_content(parts[at]))
                end = next(ends, len(parts))
                yield index, end, {}
            else:
                end = index + 1
                yield index, end, None
            index = end

    def model_item(self, part: Part) -> Iterator[dict[str, Any]]:
        match part:
            case Reasoning():
                yield from self.reasoning(part)
            case ToolCall():
                yield self.call(part)
            case Opaque():
                known = opaque_object(part, FORMAT)
                if known:
                    yield known
            case _:
                pass

    def reasoning(self, part: Reasoning) -> Iterator[dict[str, Any]]:
        if part.provider != FORMAT or not part.payload:
            return
        item = json_object(part.payload) or {}
        if self.verbatim or item.get("encrypted_content") or (self.store and item.get("id")):
            yield item

    def call(self, call: ToolCall) -> dict[str, Any]:
        rest = dict(self.kept.get("calls", {}).get(call.id, {}))
        kind = rest.pop("type", "function_call")
        item = {
            "type": kind,
            "call_id": self.ids.call(call.id),
            "name": tool_name(call.name),
            _CALLS[kind]: call.arguments,
        }
        return {**item, **rest} if self.verbatim else item

    def output(self, result: ToolResult) -> dict[str, Any]:
        content = [item for part in result.content for item in self.part(part, "input_text")]
        if self.verbatim:
            rest = self.kept.get("parts", {})
            content = [{**item, **rest.get(str(index), {})} for index, item in enumerate(content)]
        alone = len(content) == 1 and content[0].keys() == {"type", "text"} and self.kept.get("form") != "list"
        empty: Any = [] if self.verbatim and self.kept.get("form") == "list" else ""
        output = content[0]["text"] if alone else content or empty
        kind = self.kept.get("type", "function_call_output")
        item = {"type": kind, "call_id": self.ids.result(result.call_id), "output": output}
        return {**item, **self.kept.get("item", {})} if self.verbatim else item

    def part(self, part: Part, text_type: str) -> Iterator[dict[str, Any]]:
        match part:
            case Text(text=text):
                yield {"type": text_type, "text": text}
            case Image():
                yield encode_image(part) if text_type == "input_text" else {"type": text_type, "text": "[image]"}
            case Opaque():
                known = opaque_object(part, FORMAT)
                if known:
                    yield known
            case Reasoning() | ToolCall() | ToolResult():
                pass
            case _ as never:
                assert_never(never)


_CONTENT_TYPES: Final = frozenset({"refusal", "output_text"})


def _is_content(part: Part) -> bool:
    """Whether a part stands inside a message item; other parts are items of their own."""
    match part:
        case Text() | Image():
            return True
        case Opaque():
            known = opaque_object(part, FORMAT)
            return known is not None and str(known.get("type")) in _CONTENT_TYPES
        case Reasoning() | ToolCall() | ToolResult():
            return False
        case _ as never:
            assert_never(never)


def paired(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a model's items without reasoning that no message or call follows."""
    kept: list[dict[str, Any]] = []
    for item in reversed(items):
        if item.get("type") != "reasoning" or kept:
            kept.append(item)
    return kept[::-1]


def encode_image(image: Image) -> dict[str, Any]:
    """Return an image as input content."""
    item = {"type": "input_image", "image_url": image_url(image)}
    return item if image.detail is None else {**item, "detail": image.detail}
