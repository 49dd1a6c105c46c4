"""Messages of the Anthropic Messages API, in and out.

In memory every tool result is a `tool` message of its own; on the wire the results of a run stand in one user message
right after the calls, before any text (documented rule), and roles alternate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, assert_never

import msgspec
from msgspec.structs import replace

from turnfold.messages.canonical import js_json
from turnfold.messages.model import Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from turnfold.transcripts.naming import Namer
from turnfold.transcripts.reading import extras, keep, text_of
from turnfold.transcripts.wire import CallIds, arguments_object, json_object, kept_of, opaque_object, tool_name

FORMAT: Final = "anthropic"
NO_TEXT: Final = "[empty message]"
"""Stands for a user message without content: the API refuses empty and blank text blocks."""
NO_USER: Final = "[The conversation begins with the assistant's message.]"
"""Opens a request whose first message would be the assistant's: the API wants the user's first."""


MEDIA_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Kinds of images that the API takes (documented)."""


class KeptMessage(msgspec.Struct):
    """What a message keeps under `metadata["anthropic"]`."""

    form: str = ""
    id: bool = False
    fields: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}


class BadMessage(ValueError):
    """A message that cannot be taken; the text says why."""


# In


def decode_message(value: Any, namer: Namer) -> Iterator[Message]:
    """Yield the messages that one wire message holds: a tool message for each result, then the rest. Raises BadMessage."""
    for message in split_message(value):
        own = text_of(value.get("id")) if message.role != "tool" else None
        name = namer.name(message)
        if own:
            metadata = {FORMAT: {**message.metadata.get(FORMAT, {}), "id": True}}
            message = replace(message, metadata=metadata)
        yield replace(message, id=own or name)


def split_message(value: Any) -> list[Message]:
    """Return the messages that one wire message holds, without ids. Raises BadMessage."""
    if not isinstance(value, dict):
        raise BadMessage("it is not a message object")
    role = value.get("role")
    if role not in ("user", "assistant", "system"):
        raise BadMessage(f"the role {role!r} is unknown (known: user, assistant)")
    content = value.get("content")
    reader = BlockReader(role)
    results: list[Message] = []
    if isinstance(content, str):
        parts: tuple[Part, ...] = (Text(text=content),)
    elif isinstance(content, list):
        results = [reader.result(block) for block in content if role == "user" and _is_result(block)]
        rest = [block for block in content if not (role == "user" and _is_result(block))]
        if results and not rest:
            return results
        if not results:
            reader.note_form(rest)
        parts = tuple(reader.part(index, block) for index, block in enumerate(rest))
    else:
        raise BadMessage("its content is not text or a list of blocks")
    fields = extras(value, frozenset({"role", "content", "id"}))
    if fields:
        reader.kept["fields"] = fields
    return [*results, Message(id="", role=role, parts=parts, metadata={FORMAT: reader.kept} if reader.kept else {})]


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


class BlockReader:
    """Reads the content blocks of one message; `kept` gathers what a Message has no place for."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.kept: dict[str, Any] = {}

    def note_form(self, blocks: Sequence[Any]) -> None:
        """Remember a list where text alone would do."""
        if not blocks or (len(blocks) == 1 and isinstance(blocks[0], dict) and blocks[0].get("type") == "text"):
            self.kept["form"] = "list"

    def part(self, index: int, block: Any) -> Part:
        """Return one block as a part. Raises BadMessage."""
        match block:
            case {"type": "text", "text": str() as text}:
                part: Part = Text(text=text)
                known = {"type", "text"}
            case {"type": "thinking", "thinking": str() as text}:
                payload = js_json(extras(block, frozenset({"type", "thinking"})))
                return Reasoning(text=text, payload=payload, provider=FORMAT)
            case {"type": "redacted_thinking"}:
                return Reasoning(payload=js_json(keep(block)), provider=FORMAT)
            case {"type": "tool_use", "id": str() as given, "name": str() as name} if self.role == "assistant":
                part = ToolCall(id=given, name=name, arguments=js_json(block.get("input", {})))
                known = {"type", "id", "name", "input"}
            case {"type": "image", "source": dict() as source} if (image := image_of(source)) is not None:
                part, known = image, {"type", "source"}
            case {"type": str()}:
                return Opaque(source=FORMAT, payload=js_json(block))
            case _:
                raise BadMessage(f"content block {index + 1} has no known type")
        self.keep_rest(str(index), block, known)
        return part

    def keep_rest(self, where: str, block: dict[str, Any], known: set[str]) -> None:
        """Keep the fields of a block that are not known, under its place."""
        rest = extras(block, frozenset(known))
        if rest:
            self.kept.setdefault("parts", {})[where] = rest

    def result(self, block: dict[str, Any]) -> Message:
        """Return a tool result block as a message. Raises BadMessage."""
        given = block.get("tool_use_id")
        if not isinstance(given, str) or not given:
            raise BadMessage("a tool result has no tool_use_id")
        reader = BlockReader("tool")
        content = reader.result_content(block)
        known = {"type", "tool_use_id", "content"} | ({"is_error"} if block.get("is_error") is True else set())
        reader.keep_rest("result", block, known)
        part = ToolResult(call_id=given, content=content, is_error=block.get("is_error") is True)
        return Message(id="", role="tool", parts=(part,), metadata={FORMAT: reader.kept} if reader.kept else {})

    def result_content(self, block: dict[str, Any]) -> tuple[Text | Image | Opaque, ...]:
        """Return the parts of a tool result block. Raises BadMessage."""
        content = block.get("content")
        if isinstance(content, str):
            return (Text(text=content),)
        if content is None:
            return ()
        if not isinstance(content, list):
            raise BadMessage("the content of a tool result is not text or a list of blocks")
        self.note_form(content)
        parts = [self.part(index, item) for index, item in enumerate(content)]
        return tuple(part for part in parts if isinstance(part, Text | Image | Opaque))


def image_of(source: dict[str, Any]) -> Image | None:
    """Return the image that a source gives, None for kinds that turnfold has no place for (files by id)."""
    if source.get("type") == "base64" and isinstance(source.get("data"), str):
        return Image(media_type=text_of(source.get("media_type")), data=source["data"])
    if source.get("type") == "url" and isinstance(source.get("url"), str):
        return Image(url=source["url"])
    return None


# Out


def encode_messages(messages: Iterable[Message], *, verbatim: bool = False) -> list[dict[str, Any]]:
    """Return messages without the leading system prompt as the `messages` of a request.

    Roles alternate, the user's comes first, results stand right after their calls. Reasoning goes back only with its
    signature. With `verbatim`, unknown fields that were read come back too (files; a client's own request).
    """
    out: list[dict[str, Any]] = []
    ids = CallIds()
    for message in messages:
        writer = _Writer(message, ids, verbatim=verbatim)
        blocks = writer.blocks()
        if not blocks:
            continue
        role = "assistant" if message.role == "assistant" else "user"
        if out and out[-1]["role"] == role:
            out[-1]["content"] = _blocks(out[-1]["content"]) + blocks
        else:
            out.append({"role": role, "content": writer.content(blocks), **writer.rest()})
    if out and out[0]["role"] == "assistant":
        out.insert(0, {"role": "user", "content": NO_USER})
    if out and out[-1]["role"] == "assistant" and not verbatim:
        _strip_end(out)
    return out


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _strip_end(out: list[dict[str, Any]]) -> None:
    """Remove blank space after the last assistant text: the API refuses it."""
    content = out[-1]["content"]
    if isinstance(content, str):
        out[-1]["content"] = content.rstrip()
    elif content[-1].get("type") == "text":
        content[-1] = {**content[-1], "text": content[-1]["text"].rstrip()}


class _Writer:
    """Writes the blocks of one message."""

    def __init__(self, source: Message, ids: CallIds, *, verbatim: bool) -> None:
        self.kept = kept_of(source.metadata, FORMAT, KeptMessage)
        self.source, self.ids, self.verbatim = source, ids, verbatim

    def content(self, blocks: list[dict[str, Any]]) -> Any:
        if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} and self.kept.get("form") != "list":
            return blocks[0]["text"]
        return blocks

    def rest(self) -> dict[str, Any]:
        if not self.verbatim:
            return {}
        own = {"id": self.source.id} if self.kept.get("id") else {}
        return {**self.kept.get("fields", {}), **own}

    def blocks(self) -> list[dict[str, Any]]:
        if self.source.role == "tool":
            return [self.result(result) for result in self.source.results]
        if self.source.role == "system":
            return [{"type": "text", "text": f"<system-message>\n{self.source.text}\n</system-message>"}]
        blocks = [block for index, part in enumerate(self.source.parts) for block in self.part(index, part)]
        if not blocks and self.source.role == "user":
            return [{"type": "text", "text": NO_TEXT}]
        return blocks

    def part(self, index: int, part: Part) -> Iterator[dict[str, Any]]:
        rest = self.kept.get("parts", {}).get(str(index), {}) if self.verbatim else {}
        match part:
            case Text(text=text):
                if text.strip() or self.verbatim:
                    yield {"type": "text", "text": text, **rest}
            case Reasoning():
                yield from _thinking(part, verbatim=self.verbatim)
            case ToolCall():
                yield {**self.call(part), **rest}
            case Image():
                yield {**self.image(part), **rest}
            case Opaque():
                known = opaque_object(part, FORMAT)
                if known:
                    yield known
            case ToolResult():
                pass  # results are written by `result`
            case _ as never:
                assert_never(never)

    def call(self, call: ToolCall) -> dict[str, Any]:
        given = arguments_object(call.arguments)
        return {"type": "tool_use", "id": self.ids.call(call.id), "name": tool_name(call.name), "input": given}

    def image(self, image: Image) -> dict[str, Any]:
        """Return an image block where the API takes it, else a word in its place."""
        known = image.data is None or image.media_type in MEDIA_TYPES or self.verbatim
        if self.source.role == "assistant" or not known:
            return {"type": "text", "text": f"[image{f' of type {image.media_type}' if image.media_type else ''}]"}
        return encode_image(image)

    def result(self, result: ToolResult) -> dict[str, Any]:
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": self.ids.result(result.call_id)}
        content = [item for index, part in enumerate(result.content) for item in self.part(index, part)]
        if content:
            block["content"] = self.content(content)
        elif self.kept.get("form") == "list" and self.verbatim:
            block["content"] = []
        if result.is_error:
            block["is_error"] = True
        return {**block, **(self.kept.get("parts", {}).get("result", {}) if self.verbatim else {})}


def _thinking(part: Reasoning, *, verbatim: bool) -> Iterator[dict[str, Any]]:
    """Yield reasoning that came from this API as it came; other reasoning has no signature and cannot be sent."""
    if part.provider != FORMAT or not part.payload:
        return
    payload = json_object(part.payload) or {}
    if payload.get("type") == "redacted_thinking":
        yield payload
    elif payload.get("signature") or verbatim:
        yield {"type": "thinking", "thinking": part.text, **payload}


def encode_image(image: Image) -> dict[str, Any]:
    """Return an image block."""
    if image.data is not None:
        source = {"type": "base64", "media_type": image.media_type or "", "data": image.data}
    else:
        source = {"type": "url", "url": image.url or ""}
    return {"type": "image", "source": source}
