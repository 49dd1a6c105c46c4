"""What of a message is counted, the same for every counter: its texts in order, and its images.

Reasoning counts, since providers that want it back are sent it. Base64 never counts as text: an image is an image, and a
long run of base64 inside content of an unknown kind counts as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import assert_never

import msgspec

from turnfold.messages.canonical import js_json
from turnfold.messages.model import Image, Message, Opaque, Part, Reasoning, Text, Tool, ToolCall, ToolResult

_BASE64_RUN = re.compile(r"[A-Za-z0-9+/_-]{512,}={0,2}")


class Pieces(msgspec.Struct):
    """The texts and images of a message, being collected."""

    texts: list[str] = msgspec.field(default_factory=list)
    images: list[Image] = msgspec.field(default_factory=list)


def pieces(message: Message) -> Pieces:
    """Return the texts and images of a message, in order."""
    found = Pieces()
    _collect(message.parts, found)
    return found


def _collect(parts: Iterable[Part], found: Pieces) -> None:
    for part in parts:
        match part:
            case Text(text=text) | Reasoning(text=text):
                found.texts.append(text)
            case ToolCall(name=name, arguments=arguments):
                found.texts += (name, arguments)
            case ToolResult(content=content):
                _collect(content, found)
            case Image():
                found.images.append(part)
            case Opaque(payload=payload):
                found.texts.append(_BASE64_RUN.sub("", payload))
                found.images += [Image()] * len(_BASE64_RUN.findall(payload))
            case _ as never:
                assert_never(never)


def tool_text(tool: Tool) -> str:
    """Return the text of an offered tool: name, description and JSON schema."""
    return f"{tool.name}\n{tool.description}\n{js_json(tool.parameters)}"
