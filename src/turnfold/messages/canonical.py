"""Canonical JSON, message digests and the chain.

A digest says what a message means, and nothing else: not its id, time, usage, reasoning or provider payloads, which
clients do not send back (SPEC §1). The chain names a whole prefix by one hash, so comparing histories is comparing two
strings. The recipe's name (`b2v1`) is part of every digest: a changed recipe can never be taken for changed content.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from json.encoder import encode_basestring as quote
from typing import Any, assert_never

from turnfold.messages.model import Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

RECIPE = "b2v1"
_LONE = re.compile(r"[\ud800-\udfff]")
HASH_BYTES = 20  # 160 bits: no practical collision, and short in every row
GENESIS = f"{RECIPE}:{'0' * (2 * HASH_BYTES)}"
"""The chain before the first message."""


def js_json(value: Any, *, sort: bool = False) -> str:
    """Return JSON text as JavaScript's JSON.stringify writes it: no spaces, not escaped to ASCII.

    With `sort`, keys are ordered by UTF-16 code units as in RFC 8785, so that equal values give equal text.
    Raises RecursionError for values nested deeper than the interpreter allows.
    """
    match value:
        case str():
            return _quoted(value)
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return js_number(value)
        case dict():
            keys = sorted(value, key=_utf16) if sort else value
            return "{" + ",".join(f"{_quoted(str(key))}:{js_json(value[key], sort=sort)}" for key in keys) + "}"
        case list() | tuple():
            return "[" + ",".join([js_json(item, sort=sort) for item in value]) + "]"
        case _:
            raise TypeError(f"not a JSON value: {type(value).__name__}")


def _quoted(text: str) -> str:
    """Quote a string; half a surrogate pair is written as an escape, so that the text can be encoded."""
    quoted = quote(text)
    return quoted if quoted.isascii() else _LONE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def js_number(value: float) -> str:
    """Return a float as ECMAScript writes it in JSON (ECMA-262 Number::toString; not finite gives null)."""
    if not math.isfinite(value):
        return "null"
    if value.is_integer() and abs(value) <= 2**53:
        return str(int(value))
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(digits) - len(fraction) + int(exponent or 0)
    return ("-" if value < 0 else "") + _place_point(digits.rstrip("0"), point)


def _place_point(digits: str, point: int) -> str:
    """Write `0.digits * 10**point` the shortest way ECMAScript allows."""
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}" if point < len(digits) else digits.ljust(point, "0")
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    return f"{digits[0]}{'.' if len(digits) > 1 else ''}{digits[1:]}e{point - 1:+d}"


def digest(message: Message) -> str:
    """Return the tagged hash of what the message means: its role, text, images, tool calls and tool results."""
    parts = message.parts
    if len(parts) == 1 and type(only := parts[0]) is Text and only.text:  # nearly every message; three times as fast
        meaning = f'["{message.role}",[["text",{quote(only.text)}]]]'
    else:
        meaning = f'["{message.role}",[{",".join(_meanings(parts))}]]'
    return f"{RECIPE}:{_hash(meaning.encode('utf-8', 'surrogatepass'))}"


def digest_text(*texts: str) -> str:
    """Return the tagged hash of some texts, for fingerprints and prompt revisions."""
    return f"{RECIPE}:{_hash(js_json(list(texts)).encode('utf-8', 'surrogatepass'))}"


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=HASH_BYTES).hexdigest()


def _meanings(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        match part:
            case Text(text=text):
                if text:
                    yield f'["text",{quote(text)}]'
            case ToolCall(name=name, arguments=arguments):
                yield f'["call",{quote(name)},{canonical_arguments(arguments)}]'
            case ToolResult(content=content):
                yield f'["result",[{",".join(_meanings(content))}]]'
            case Image():
                yield f'["image",{quote(_image_content(part))}]'
            case Reasoning() | Opaque():
                pass  # clients do not send these back
            case _ as never:
                assert_never(never)


def _image_content(image: Image) -> str:
    if image.data is not None:
        return _hash("".join(image.data.split()).encode("utf-8", "surrogatepass"))
    return image.url or ""


MAX_ARGUMENTS_DEPTH = 64
"""Arguments nested deeper are compared as text: how deep Python can go depends on who calls, and a digest must not."""


def canonical_arguments(arguments: str) -> str:
    """Return a tool call's arguments as canonical JSON; text that is not JSON, or nested too deep, is tagged and kept.

    The tagged form is no JSON, so it is never equal to arguments that are.
    """
    if not arguments.strip():
        return "{}"  # some providers send nothing for a call without arguments
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return f"raw:{quote(arguments)}"
    return f"raw:{quote(arguments)}" if _is_deep(value, arguments) else js_json(value, sort=True)


def _is_deep(value: Any, text: str) -> bool:
    """Whether a JSON value, read from `text`, is nested deeper than `MAX_ARGUMENTS_DEPTH`; walked without recursion."""
    if text.count("{") + text.count("[") <= MAX_ARGUMENTS_DEPTH:
        return False
    level, depth = [value], 0
    while level := [item for each in level for item in _children(each)]:
        depth += 1
        if depth > MAX_ARGUMENTS_DEPTH:
            return True
    return False


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def extend_chain(chain: str, message_digest: str) -> str:
    """Return the chain after one more message: H(chain, digest)."""
    return f"{RECIPE}:{_hash(f'{chain}|{message_digest}'.encode())}"


def chain_of(messages: Iterable[Message], start: str = GENESIS, *, digest_of: Callable[[Message], str] = digest) -> str:
    """Return the chain over `messages` of kind `message`, continuing from `start`; other kinds are outside the chain.

    `digest_of` may be a `digest` that remembers.
    """
    chain = start
    for message in messages:
        if message.kind == "message":
            chain = extend_chain(chain, digest_of(message))
    return chain
