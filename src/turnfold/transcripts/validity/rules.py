"""What all checkers share: the violation as a value, and tests of small pieces."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator
from typing import Any, Final, TypeGuard

import msgspec

IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Kinds of images that both providers document."""


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One broken rule: `place` is a path into the request, `rule` a stable word, `detail` a sentence."""

    place: str
    rule: str
    detail: str

    def __str__(self) -> str:
        return f"{self.place}: {self.detail}"


def objects(value: Any, place: str) -> Iterator[tuple[str, dict[str, Any]] | Violation]:
    """Yield (place, object) for each item of a list, and a violation for what is none."""
    if not isinstance(value, list):
        yield Violation(place=place, rule="shape", detail="it must be a list")
        return
    for index, item in enumerate(value):
        where = f"{place}[{index}]"
        if isinstance(item, dict):
            yield where, item
        else:
            yield Violation(place=where, rule="shape", detail="it must be an object")


def is_text(value: Any) -> TypeGuard[str]:
    """Whether a value is text with something in it."""
    return isinstance(value, str) and bool(value)


def is_base64(value: Any) -> bool:
    """Whether a value is base64 data that is not empty."""
    if not isinstance(value, str) or not value:
        return False
    try:
        b64decode(value, validate=True)
    except (Error, ValueError):
        return False
    return True


_DATA_URL: Final = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


def bad_image_url(url: Any) -> str | None:
    """Return what is wrong with the URL of an image, None when nothing is."""
    if not is_text(url):
        return "an image needs a URL"
    if not url.startswith("data:"):
        return None if url.startswith(("http://", "https://")) else "an image's URL must be http, https or data"
    match = _DATA_URL.fullmatch(url)
    if not match or not is_base64(match[2]):
        return "an image's data URL must hold base64"
    return None if match[1] in IMAGE_TYPES else f"images of type {match[1]} are not taken"


def check_tools(tools: Any, schema_at: tuple[str, ...], name_at: tuple[str, ...], max_name: int) -> Iterator[Violation]:
    """Yield what is wrong with a request's tools. The paths say where a tool has its name and schema."""
    if tools is None:
        return
    name_rule, seen = re.compile(rf"[a-zA-Z0-9_-]{{1,{max_name}}}"), set()
    for item in objects(tools, "tools"):
        if isinstance(item, Violation):
            yield item
            continue
        place, tool = item
        if tool.get("type") not in (None, "function"):
            continue  # the provider's own tools
        name, schema = _at(tool, name_at), _at(tool, schema_at)
        if not isinstance(name, str) or not name_rule.fullmatch(name):
            yield Violation(place=place, rule="tool-name", detail=f"a tool's name must match {name_rule.pattern}")
        elif name in seen:
            yield Violation(place=place, rule="tool-name", detail=f"two tools have the name {name!r}")
        seen.add(name if isinstance(name, str) else "")
        if schema is not None and (not isinstance(schema, dict) or schema.get("type") not in (None, "object")):
            yield Violation(place=place, rule="tool-schema", detail="a tool's schema must be of type object")


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
