"""ChatGPT exports (`conversations.json`), read only: each conversation is a tree, its edits and regenerations are branches.

Calls and results carry no ids there: a call is an assistant message addressed to a tool, and takes its node's id; what the tool
says next answers it. Thoughts stand in nodes of their own and join the reply that they led to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec.structs import replace

from turnfold.messages.canonical import js_json
from turnfold.messages.model import Image, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from turnfold.transcripts.document import Event, OpaqueRow, Problem, Skipped, Start, opaque_row
from turnfold.transcripts.elements import elements
from turnfold.transcripts.reading import epoch_ms, keep, text_of
from turnfold.transcripts.tree import Node, unroll
from turnfold.transcripts.wire import json_object

FORMAT: Final = "chatgpt"
_ROLES: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "tool"}
_KEPT: Final = ("weight", "status", "recipient", "channel")


def recognizes(value: Any) -> bool:
    """Whether one JSON value of a file is in this format."""
    if isinstance(value, list):
        return any(recognizes(item) for item in value[:3])
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


def events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Yield the conversations of an export. Memory: the largest conversation."""
    for row in elements(chunks):
        if isinstance(row, Problem):
            yield row
        elif isinstance(row.value, list):
            for number, item in enumerate(row.value, 1):
                yield from _conversation(item, f"{row.place}, element {number}")
        else:
            yield from _conversation(row.value, row.place)


def _conversation(value: Any, place: str) -> Iterator[Event]:
    if not isinstance(value, dict) or not isinstance(value.get("mapping"), dict):
        yield Problem(place=place, reason="it has no mapping of messages", cure="Export the conversations again.")
        return
    yield Start(
        format=FORMAT,
        conversation_id=text_of(value.get("conversation_id")) or text_of(value.get("id")),
        title=text_of(value.get("title")),
        metadata={FORMAT: {key: keep(value[key]) for key in ("gizmo_id", "default_model_slug") if value.get(key)}},
    )
    yield from _Tree(value, place).events()


class _Tree:
    """One conversation's nodes, read from the roots down."""

    def __init__(self, value: dict[str, Any], place: str) -> None:
        mapping = value["mapping"]
        self.place = place
        self.raw: dict[str, dict[str, Any]] = {key: node for key, node in mapping.items() if isinstance(node, dict)}
        self.parents = {key: self.parent(node) for key, node in self.raw.items()}
        self.leaf = text_of(value.get("current_node"))
        self.nodes: dict[str, Node] = {}
        self.thoughts: dict[str, tuple[Part, ...]] = {}  # thoughts that the next reply below a node takes up
        self.open_call: dict[str, str | None] = {}  # the call that is not answered yet below a node
        self.noise: list[Event] = []

    def parent(self, node: dict[str, Any]) -> str | None:
        given = node.get("parent")
        return given if isinstance(given, str) and given in self.raw else None

    def events(self) -> Iterator[Event]:
        for key in self.from_the_roots():
            self.read(key)
        self.keep_last_thoughts()
        yield from self.noise
        yield from unroll(tuple(self.nodes.values()), self.leaf if self.leaf in self.nodes else self.newest_leaf())

    def from_the_roots(self) -> Iterator[str]:
        """Yield every node after its parent; nodes of a circle come at the end, as they stand."""
        children: dict[str | None, list[str]] = {}
        for key, parent in self.parents.items():
            children.setdefault(parent, []).append(key)
        stack, seen = list(reversed(children.get(None, []))), set()
        while stack:
            key = stack.pop()
            seen.add(key)
            yield key
            stack.extend(reversed(children.get(key, [])))
        yield from (key for key in self.raw if key not in seen)

    def read(self, key: str) -> None:
        parent, message = self.parents[key], self.raw[key].get("message")
        thoughts, call = self.thoughts.get(parent or "", ()), self.open_call.get(parent or "")
        messages: tuple[Message, ...] = ()
        if isinstance(message, dict):
            found = self.message(key, message, call)
            messages = (found,) if found else ()
        elif message is not None:
            self.noise.append(self.opaque(key, message))
        if messages and messages[0].role == "assistant":
            only_thoughts = all(isinstance(part, Reasoning) for part in messages[0].parts)
            thoughts = (*thoughts, *messages[0].parts) if only_thoughts else thoughts
            messages = () if only_thoughts else (replace(messages[0], parts=(*thoughts, *messages[0].parts)),)
            thoughts = thoughts if only_thoughts else ()
            call = next((part.id for shown in messages for part in shown.calls), call if only_thoughts else None)
        elif messages:
            call = None
        self.thoughts[key], self.open_call[key] = thoughts, call
        place = f"{self.place}, node {key!r}"
        self.nodes[key] = Node(key=key, parent=parent, messages=messages, place=place)

    def opaque(self, key: str, value: Any) -> OpaqueRow:
        return opaque_row(f"{self.place}, node {key!r}", value)

    def message(self, key: str, value: dict[str, Any], call: str | None) -> Message | None:
        """Return what a node says; None for nothing, which is counted."""
        author = value.get("author") if isinstance(value.get("author"), dict) else {}
        assert isinstance(author, dict)
        role = author.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            reason = f"the role {role!r} is unknown (known: {', '.join(_ROLES)})"
            self.noise.append(Problem(place=f"{self.place}, node {key!r}", reason=reason, cure="Remove the node."))
            return None
        parts = tuple(_content(value.get("content")))
        if not any(not isinstance(part, Text) or part.text for part in parts):
            self.noise.append(Skipped(kind="node without content"))
            return None
        return _message(key, value, _ROLES[role], parts, text_of(author.get("name")), call)

    def keep_last_thoughts(self) -> None:
        """Give thoughts that no reply took up a message of their own."""
        with_children = set(self.parents.values())
        for key, thoughts in self.thoughts.items():
            if thoughts and key not in with_children:
                own = Message(id=key, role="assistant", parts=thoughts)
                self.nodes[key] = replace(self.nodes[key], messages=(*self.nodes[key].messages, own))

    def newest_leaf(self) -> str | None:
        """Return the leaf that was written last, for exports that do not say which one is current."""
        with_children = set(self.parents.values())
        leaves = [key for key in self.nodes if key not in with_children]
        return max(leaves, key=self.created, default=None)

    def created(self, key: str) -> int:
        message = self.raw[key].get("message")
        return (epoch_ms(message.get("create_time"), unit=1000) if isinstance(message, dict) else None) or 0


def _message(
    key: str, value: dict[str, Any], role: Role, parts: tuple[Part, ...], name: str | None, call: str | None
) -> Message:
    given = value.get("metadata")
    extra = given if isinstance(given, dict) else {}
    own = {
        field: keep(value[field])
        for field in _KEPT
        if value.get(field) not in (None, "all", "finished_successfully", 1)
    }
    metadata: dict[str, Any] = {FORMAT: own} if own else {}
    if name:
        metadata["name"] = name
    if extra.get("is_visually_hidden_from_conversation") is True:
        metadata["hidden"] = True
    recipient = text_of(value.get("recipient")) or "all"
    if role == "assistant" and recipient != "all":
        text = _text(parts)
        arguments = text if json_object(text) is not None else js_json({"input": text})
        parts = (ToolCall(id=key, name=recipient, arguments=arguments),)
    elif role == "tool" and call is not None:
        content = tuple(part for part in parts if isinstance(part, Text | Image | Opaque))
        parts = (ToolResult(call_id=call, content=content, name=name),)
    elif role == "tool":
        role = "system"  # what a tool put into the conversation without being called, such as an uploaded file's text
    return Message(
        id=key,
        role=role,
        parts=parts,
        created_at=epoch_ms(value.get("create_time"), unit=1000),
        stop_reason=_stop_reason(extra),
        model=text_of(extra.get("model_slug")) if role == "assistant" else None,
        metadata=metadata,
    )


def _stop_reason(extra: dict[str, Any]) -> str | None:
    details = extra.get("finish_details")
    return text_of(details.get("type")) if isinstance(details, dict) else None


def _text(parts: tuple[Part, ...]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def _content(content: Any) -> Iterator[Part]:
    """Yield the parts of a node's content; kinds without a place in a Message are kept whole."""
    match content:
        case {"content_type": "text" | "multimodal_text", "parts": list() as parts}:
            yield from (_part(part) for part in parts)
        case {"content_type": "code" | "execution_output" | "system_error", "text": str() as text}:
            yield Text(text=text)
        case {"content_type": "thoughts", "thoughts": list() as thoughts}:
            yield from _thoughts(thoughts)
        case {"content_type": "reasoning_recap"}:
            return
        case _ if not content:
            return
        case _:
            yield Opaque(source=FORMAT, payload=js_json(keep(content)))


def _part(part: Any) -> Part:
    match part:
        case str():
            return Text(text=part)
        case {"content_type": "audio_transcription", "text": str() as text}:
            return Text(text=text)
        case _:
            return Opaque(source=FORMAT, payload=js_json(keep(part)))


def _thoughts(thoughts: list[Any]) -> Iterator[Reasoning]:
    for thought in thoughts:
        if isinstance(thought, dict):
            texts = [text for field in ("summary", "content") if (text := text_of(thought.get(field)))]
            if texts:
                yield Reasoning(text="\n".join(texts))
