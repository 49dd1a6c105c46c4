"""What a summarizer may answer, and what is refused: a failed answer is never content (SPEC §6).

Codes of refusal: `aborted`, `cut_off`, `refused`, `tool_call`, `reasoning_only`, `blank`, `echo`, `continued`,
`broken_json`, `incomplete_json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import msgspec

from turnfold.core.plan import OutputFormat
from turnfold.core.text.scripts import Language, language_of
from turnfold.core.transcript_lines import escape_role_lines
from turnfold.errors import SummaryRejectedError
from turnfold.messages.model import ROLES, Message, Opaque, Reasoning

CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_context_window_exceeded", "incomplete"})
REFUSED = frozenset({"content_filter", "refusal", "safety", "recitation", "prohibited_content", "sensitive"})
ABORTED = frozenset({"error", "aborted", "cancelled", "failed", "insufficient_system_resource"})
STRUCTURED_KEYS = ("canonical", "interaction", "open_threads")

_HEADINGS: dict[Language, tuple[str, str, str]] = {
    "en": ("Facts", "Relationship and tone", "Unfinished"),
    "zh": ("事实", "关系与语气", "未完之事"),
}
_THINKING = re.compile(r"\s*<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"\s*```[\w-]*[^\S\n]*\n(.*?)\n?[^\S\n]*```\s*", re.DOTALL)
_PREFACE = re.compile(
    r"\s*(?:(?:sure|certainly|of course|okay|ok)[,.!]?\s*)?(?:here(?:'s| is| are)\b[^\n]{0,80}\bsummar[^\n]{0,60}:"
    r"|(?:好的?[，,。]?)?以下是[^\n]{0,40}(?:摘要|总结|概要)[^\n]{0,20}[：:])\s*\n",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"(?:i(?:'|’)?m (?:very |so |really )?sorry,?|i apologi[sz]e,?|sorry,?|unfortunately,?|as an ai(?: language model| assistant)?,?)?"
    r"\W*(?:but |because )?i(?: am|'m|’m)? (?:cannot|can(?:'|’)?t|can not|won(?:'|’)?t|will not|(?:am )?(?:not able|unable) to|do not feel comfortable)"
    r" (?:\w+ ){0,3}?(?:assist|help|comply|summari[sz]e|provide|fulfil+|continue|create|generate|write|engage|process|complete|do)\b",
    re.IGNORECASE,
)
_REFUSAL_ZH = re.compile(
    r"(?:非常|很|十分)?(?:抱歉|对不起|不好意思|遗憾)?[，,。！!、\s]*(?:但|作为(?:一个|一名)?(?:AI|人工智能)[^，,。]{0,12}[，,])?\s*"
    r"我(?:无法|不能|没有办法|没办法|不可以|拒绝)(?:\S{0,8}?)(?:提供|协助|帮助|帮您|帮你|满足|总结|概括|完成|处理|生成|继续|回答|参与|执行)",
    re.IGNORECASE,
)
_REFUSAL_LENGTH = 600
"""Characters; a longer answer that opens with regret is more likely a summary of somebody's regret."""

_SPEAKS_ON = re.compile(r"(?:assistant|ai|助手|助理)\s*[:：]", re.IGNORECASE)
_ROLE_LINES = tuple(f"[{role}] " for role in ROLES)
_LABEL = re.compile(
    r"^[^\S\n]*(?:[-*][^\S\n]+)?(?:\[(?:system|user|assistant|tool)\]"
    r"|\**(?:system|user|assistant|human|ai|tool|系统|用户|助手|工具)\**[^\S\n]?[:：]\**)[^\S\n]*",
    re.IGNORECASE | re.MULTILINE,
)
_BLANKS = re.compile(r"\s+")
_SHINGLE = 24
_MAX_JSON = 400_000
_MAX_OBJECTS = 64


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer is judged against: the instructions, what was shown, the frame and the format asked for."""

    instructions: str
    shown: str
    frame: str
    output_format: OutputFormat


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A usable summary; `structured` for `structured_json`."""

    text: str
    structured: dict[str, Any] | None = None


def accept(reply: Message, asked: Asked) -> Answer:
    """Return the summary in a model's reply. Raises SummaryRejectedError with a stable code for anything else."""
    _refuse_failed(reply)
    text = _own_words(reply)
    _refuse_refusal(text)
    _refuse_echo(text, asked)
    if asked.output_format == "structured_json":
        structured = parse_structured(text)
        return Answer(text=structured_text(structured), structured=structured)
    return Answer(text=_unwrapped(text))


def _reject(code: str, detail: str) -> NoReturn:
    raise SummaryRejectedError(detail, code=code)


def _refuse_failed(reply: Message) -> None:
    stop = (reply.stop_reason or "").lower()
    if stop in ABORTED:
        _reject("aborted", f"the reply ended with {stop!r}")
    if stop in CUT_OFF:
        _reject("cut_off", f"the reply was cut off ({stop})")
    if stop in REFUSED or any(_is_refusal_part(part) for part in reply.parts if isinstance(part, Opaque)):
        _reject("refused", f"the model refused ({stop or 'refusal'})")
    if reply.calls:
        _reject("tool_call", f"the model called {reply.calls[0].name!r} instead of answering")


def _is_refusal_part(part: Opaque) -> bool:
    try:
        value = json.loads(part.payload)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and (bool(value.get("refusal")) or value.get("type") == "refusal")


def _own_words(reply: Message) -> str:
    """The reply's text without reasoning that some servers leave in it."""
    text = reply.text
    thought = _THINKING.match(text)
    words = (text[thought.end() :] if thought else text).strip()
    if words:
        return words
    if thought or any(isinstance(part, Reasoning) for part in reply.parts):
        _reject("reasoning_only", "the model reasoned and gave no answer")
    _reject("blank", "the reply has no text")


def _refuse_refusal(text: str) -> None:
    if len(text) <= _REFUSAL_LENGTH and (_REFUSAL.match(text) or _REFUSAL_ZH.match(text)):
        _reject("refused", f"the model declined: {text[:80]}")


# -- echoes and continuations --------------------------------------------------------------------------------------


def _refuse_echo(text: str, asked: Asked) -> None:
    if asked.frame and asked.frame in text:
        _reject("echo", "the reply repeats the markers of the request")
    if _role_line(text):
        _reject("continued", "the reply speaks on in the conversation")
    if _overlap(text, asked.instructions) > 0.5:
        _reject("echo", "the reply repeats the instructions")
    quoted = sum(line.startswith(_ROLE_LINES) for line in text.splitlines())
    if quoted > 1 or (2 * len(text) > len(asked.shown) and _overlap(text, asked.shown) > 0.9):
        _reject("echo", "the reply repeats the transcript")


def _role_line(text: str) -> bool:
    """Whether the first line is somebody's turn; the same judgement that keeps content from forging one."""
    first = "\n" + text.split("\n", 1)[0]
    return escape_role_lines(first) != first or _SPEAKS_ON.match(text) is not None


def _overlap(text: str, source: str) -> float:
    """Return the share of `text` that occurs in `source`, word for word, by windows of 24 characters."""
    answer, known = _plain(text), _plain(source)
    if len(answer) < _SHINGLE or len(known) < _SHINGLE:
        return 1.0 if answer and answer in known else 0.0
    shingles = {known[at : at + _SHINGLE] for at in range(len(known) - _SHINGLE + 1)}
    windows = range(0, len(answer) - _SHINGLE + 1, 4)
    return sum(answer[at : at + _SHINGLE] in shingles for at in windows) / len(windows)


def _plain(text: str) -> str:
    """The words alone: whoever copies a transcript may leave out who says what."""
    return _BLANKS.sub(" ", _LABEL.sub("", text)).strip().casefold()


# -- formats -------------------------------------------------------------------------------------------------------


def _unwrapped(text: str) -> str:
    """Plain text without a fence around all of it, a preface, or the record that the format is projected to."""
    fenced = _FENCED.fullmatch(text)
    bare = fenced[1] if fenced else text
    preface = _PREFACE.match(bare)
    bare = (bare[preface.end() :] if preface else bare).strip() or bare
    record = _plain_record(bare)
    return bare.strip() if record is None else record.strip()


def _plain_record(text: str) -> str | None:
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict) and value.get("format") == "plain_text" and isinstance(value.get("text"), str):
        if not value["text"].strip():
            _reject("blank", "the record has no text")
        return str(value["text"])
    return None


def projection(answer_text: str, structured: dict[str, Any] | None) -> dict[str, Any]:
    """Return a summary as the record that its format stands for."""
    return structured if structured is not None else {"format": "plain_text", "text": answer_text}


def parse_structured(text: str) -> dict[str, Any]:
    """Return the one object with the three keys in `text`, which may stand in a code fence or between prose.

    Each value is a string or a list of strings. Raises SummaryRejectedError: `broken_json` when there is no such object or
    more than one, `incomplete_json` when it lacks a key or a value has another shape, `blank` when it says nothing.
    """
    objects = list(_objects(text[:_MAX_JSON]))
    fitting = [value for value in objects if set(STRUCTURED_KEYS) & value.keys()]
    if not fitting or any(value != fitting[0] for value in fitting):
        _reject("broken_json", "the reply is not one JSON object with canonical, interaction and open_threads")
    value = fitting[0]
    if value.keys() != set(STRUCTURED_KEYS) or not all(_is_strings(item) for item in value.values()):
        _reject("incomplete_json", "the object must have exactly canonical, interaction and open_threads, each text")
    if not any(_items(value[key]) for key in STRUCTURED_KEYS):
        _reject("blank", "the object says nothing")
    return {key: value[key] for key in STRUCTURED_KEYS}


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the outermost JSON objects of a text, whatever stands around them."""
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    at = tries = 0
    while (at := text.find("{", at)) >= 0 and tries < _MAX_OBJECTS:
        tries += 1
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        if isinstance(value, dict):
            yield value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _is_strings(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value))


def _items(value: str | list[str]) -> list[str]:
    found = [value] if isinstance(value, str) else value
    return [item.strip() for item in found if item.strip()]


def structured_text(structured: dict[str, Any]) -> str:
    """Return a structured summary as text: three headings in its language, one line an item, empty ones left out."""
    items = {key: _items(structured[key]) for key in STRUCTURED_KEYS}
    headings = _HEADINGS[language_of(item for found in items.values() for item in found)]
    lines: list[str] = []
    for key, heading in zip(STRUCTURED_KEYS, headings, strict=True):
        if items[key]:
            lines += [f"{heading}:", *(f"- {item}" for item in items[key])]
    return "\n".join(lines)
