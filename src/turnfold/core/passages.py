"""What messages say, cut into passages that can stand alone: sentences with their speaker, calls, results' main lines.

A passage knows the section it belongs to and how far it is to be trusted to tell something (`factor`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

import msgspec

from turnfold.core.sections import Section, parse, section_of
from turnfold.core.speakers import Speakers
from turnfold.core.text.scripts import Language, language_of
from turnfold.core.text.sentences import sentences
from turnfold.messages.model import Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult

EARLIER = -1
"""The message index of passages from the previous summary."""

LINE_CHARS = 200
"""Most characters kept of one line of tool output, of code, or of a call's arguments."""
RESULT_LINES = 6
"""Most lines of one tool result that may be told apart from its errors: its beginning and its end."""
ERROR_LINES = 4
"""Most error lines of one tool result."""

QUESTION, CODE, TOOL, OWN, ANSWER = 0.7, 0.4, 0.5, 1.1, 0.8
"""Factors: a question asks more than it tells; code and tool output are long and can be found again; who speaks of
"I" or "my" tells a fact; a nameless assistant gives advice and repeats what it was told."""


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of text by `speaker` ("" for narration) in message `message`, for `section`."""

    message: int
    speaker: str
    text: str
    section: Section = "happened"
    factor: float = 1.0
    wish: bool = False


_LEADING = re.compile(
    r"""(?:(?:oh|ah|aw+|wow|whoa|woah|hey|hi|hello|well|yeah|yep|yup|haha|thanks|thank\syou|congrats|cool|nice|great
        |awesome|sure|sure\sthing|okay|ok|anyway|actually|honestly|absolutely|definitely|totally|exactly|of\scourse
        |so|also|btw|by\sthe\sway|you\sknow|i\smean|glad\sto\shear\sit|no\sproblem|no\sworries)
        (?:\sthere|\sso\smuch|\sman|\sdude|\sguys)?(?:,?\s[A-Z][a-z]+(?=[,!.\s\-–—]))?\s?(?:[,!.…]+|\s[-–—])\s*)+
       |(?:(?:嗯+|哦+|噢|啊+|哈+|嘿嘿|好的?|好吧|好呀|行|对了|对啊?|是啊|没错|当然|其实|话说|那个|那|哇+|谢谢你?|收到|明白了?|不客气|没问题)
        [，,！!。、~～…]+\s*)+
       |[\s,;，；:]+""",
    re.VERBOSE | re.IGNORECASE,
)
_TRAILING = re.compile(r"[\s\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\u200d~～]+$")
_WISH = re.compile(
    r"\b(?:i|we)(?:'d| would)? (?:want|need|like|plan|aim|hope) to\b|\b(?:please|can you|could you|help me|let's|goal|task)\b"
    r"|(?:我|我们)(?:想|要|需要|打算|计划|希望)|请|帮我|帮忙|目标|任务|能不能",
    re.IGNORECASE,
)
_OWN = re.compile(r"(?:I|I'm|I've|I'd|My|We|We've|Our|Last|Yesterday)\b|我|昨天|上周|去年")
TROUBLE = re.compile(
    r"\b(?:error|errors|exception|traceback|fail(?:ed|s|ure|ures|ing)?|crash(?:ed|es)?|bugs?|fix(?:ed|es)?|broken|timed out"
    r"|timeout|denied|refused|not found|resolved|workaround|regression|fatal|panic|root cause)\b|\w(?:Error|Exception)\b|\bE[A-Z]{3,}\b"
    r"|报错|错误|失败|异常|崩溃|修复|修好|解决了|超时|故障|原因是|根因|漏洞|回滚",
    re.IGNORECASE,
)
_BLANKS = re.compile(r"\s+")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_MARKUP_LINE = re.compile(r"^[\W_]*$")


def passages_of(messages: Sequence[Message], previous_summary: str | None, language: Language) -> list[Passage]:
    """Return all passages of an earlier summary and of `messages`, in order."""
    speakers = Speakers(messages, language)
    technical = any(message.calls or message.results for message in messages)
    found = list(_earlier(previous_summary, speakers)) if previous_summary else []
    for index, message in enumerate(messages):
        found.extend(_of_message(index, message, speakers, technical))
    return found


def conversation_language(messages: Iterable[Message], previous_summary: str | None = None) -> Language:
    """Return the language that the people of a conversation use; tool output does not count."""
    spoken = [message.text for message in messages if message.role in {"user", "assistant"}]
    return language_of(spoken or [previous_summary or ""])


def _of_message(index: int, message: Message, speakers: Speakers, technical: bool) -> Iterator[Passage]:
    for part in message.parts:
        match part:
            case Text(text=text):
                yield from _spoken(index, message, text, speakers, technical)
            case ToolCall():
                yield _call(index, part, message, speakers)
            case ToolResult():
                yield from _result(index, part, speakers)
            case Reasoning() | Image() | Opaque():
                pass
            case _:
                assert_never(part)


def _spoken(index: int, message: Message, text: str, speakers: Speakers, technical: bool) -> Iterator[Passage]:
    speaker, said = speakers.split(message, text)
    for sentence, is_code in _sentences_and_code(said):
        if is_code:
            yield Passage(message=index, speaker=speaker, text=shorten(sentence), factor=CODE)
            continue
        clean = tidy(sentence)
        if clean:
            trouble = technical and TROUBLE.search(clean) is not None
            yield Passage(
                message=index,
                speaker=speaker,
                text=clean,
                section="errors" if trouble else "happened",
                factor=_factor(clean) * (ANSWER if message.role == "assistant" and speakers.is_role(speaker) else 1.0),
                wish=message.role == "user" and _WISH.search(clean) is not None,
            )


def _sentences_and_code(text: str) -> Iterator[tuple[str, bool]]:
    """Sentences of prose; lines inside fences are marked as code."""
    if "```" not in text and "~~~" not in text:
        yield from ((sentence, False) for sentence in sentences(text))
        return
    inside = False
    for line in text.splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif inside and line.strip():
            yield line.strip(), True
        elif not inside:
            yield from ((sentence, False) for sentence in sentences(line))


def tidy(sentence: str) -> str:
    """Return a sentence without leading interjections and vocatives, list marks and trailing emoji."""
    rest = sentence.strip().lstrip("-*•>|# ")
    if not rest[-1:].isascii():
        rest = _TRAILING.sub("", rest)
    match = _LEADING.match(rest)
    if match:
        rest = rest[match.end() :]
        rest = rest[:1].upper() + rest[1:]
    return "" if _MARKUP_LINE.match(rest) else " ".join(rest.split())


def _factor(sentence: str) -> float:
    if sentence.endswith(("?", "？")):
        return QUESTION
    return OWN if _OWN.match(sentence) else 1.0


def _call(index: int, call: ToolCall, message: Message, speakers: Speakers) -> Passage:
    arguments = shorten(_BLANKS.sub(" ", call.arguments))
    speaker, _ = speakers.split(message, "")
    return Passage(message=index, speaker=speaker, text=f"-> {call.name}({arguments})", factor=TOOL)


def _result(index: int, result: ToolResult, speakers: Speakers) -> Iterator[Passage]:
    """Its error lines, wherever they stand, and some lines of its beginning and end; the rest can be found in the log."""
    text = "\n".join(part.text for part in result.content if isinstance(part, Text))
    lines = [line.strip() for line in text.splitlines() if not _MARKUP_LINE.match(line)]
    trouble = [at for at, line in enumerate(lines) if TROUBLE.search(line)][:ERROR_LINES]
    head = RESULT_LINES // 2
    ends = {*range(min(head, len(lines))), *range(max(0, len(lines) - head), len(lines))}
    speaker = speakers.tool(result.name)
    for at in sorted(ends.union(trouble)):
        wrong = at in trouble or (result.is_error and at in ends)
        yield Passage(
            message=index,
            speaker=speaker,
            text=shorten(lines[at]),
            section="errors" if wrong else "happened",
            factor=1.0 if wrong else TOOL,
        )


def shorten(line: str, most: int = LINE_CHARS) -> str:
    """Return a line of at most `most` characters, its middle left out where it was longer."""
    return line if len(line) <= most else f"{line[: most * 2 // 3]} … {line[-(most // 3 - 3) :]}"


def _earlier(previous_summary: str, speakers: Speakers) -> Iterator[Passage]:
    """Passages of an earlier summary: its sections and the speakers of its lines stay."""
    section: Section = "happened"
    known = speakers.known
    block = 0
    for line in parse(previous_summary).body.splitlines():
        opened = section_of(line)
        if opened is not None:
            section = opened
            continue
        block -= 1
        label, colon, rest = line.strip().partition(": ")
        speaker, said = (label, rest) if colon and label in known else ("", line)
        for sentence in sentences(said):
            clean = tidy(sentence)
            if clean:
                at: Section = "happened" if section == "state" else section
                yield Passage(message=EARLIER + block, speaker=speaker, text=clean, section=at, factor=_factor(clean))
