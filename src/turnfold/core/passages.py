"""What messages say, cut into passages that can stand alone: sentences with their speaker, and what tools did.

A passage knows the section it belongs to and how far it is to be trusted to tell something (`factor`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from turnfold.core.passage import EARLIER, Passage, shorten
from turnfold.core.sections import Section, parse, section_of
from turnfold.core.speakers import Speakers
from turnfold.core.text.scripts import Language, language_of
from turnfold.core.text.sentences import sentences
from turnfold.core.tool_passages import WRONG_LINE, ToolLines, is_file_label, raw_passages
from turnfold.messages.model import Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult

QUESTION, LEAD_IN, CODE, OWN, ANSWER, DECIDED = 0.7, 0.5, 0.4, 1.1, 0.8, 1.3
"""Factors: a question asks more than it tells, and what ends in a colon waits for a list; code can be found again; who
speaks of "I" or "my" tells a fact; a nameless assistant of a chat gives advice and repeats what it was told (an agent
reports what it did, a role tells what happens); what was decided outlasts what was considered."""


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
_NUMBER = re.compile(r"^\d{1,2}[.)、]\s+(?=\S)")
_TRAILING = re.compile(r"[\s\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\u200d~～]+$")
_WISH = re.compile(
    r"\b(?:i|we)(?:'d| would)? (?:want|need|like|plan|aim|hope) to\b|\b(?:please|can you|could you|help me|let's|goal|task)\b"
    r"|(?:我|我们)(?:想|要|需要|打算|计划|希望)|请|帮我|帮忙|目标|任务|能不能",
    re.IGNORECASE,
)
_WISH_WORD = re.compile(
    r"[ pchlgt](?:(?<= )to |(?<=p)lease|(?<=c)(?:an|ould) you|(?<=h)elp me|(?<=l)et's|(?<=g)oal|(?<=t)ask)"
)
"""One of these is in every English wish: looked for first, which is many times as fast."""
_OWN = re.compile(r"(?:I|I'm|I've|I'd|My|We|We've|Our|Last|Yesterday)\b|我|昨天|上周|去年")
TROUBLE = re.compile(
    r"\b(?:error|errors|exception|traceback|fail(?:ed|s|ure|ures|ing)?|crash(?:ed|es)?|bugs?|fix(?:ed|es)?|broken|timed out"
    r"|timeouts?|denied|refused|not found|resolved|workaround|regression|fatal|panic|root cause)\b"
    r"|(?-i:\w(?:Error|Exception)\b|\bE[A-Z]{4,}\b)|报错|错误|失败|异常|崩溃|修复|修好|解决了|超时|故障|原因是|根因|漏洞|回滚",
    re.IGNORECASE,
)
_DECISIONS = (
    "decid", "decision", "agreed", "we'll go", "we'll use", "settled on", "root cause", " must ", "important", "remember",
    "决定", "定了", "就用", "选定", "敲定", "原因", "必须", "记住", "记一下",
)  # fmt: skip
_QUOTES = (("“", "”"), ("「", "」"), ("『", "』"))
_NARRATES = re.compile(r"[“「『]|^\s*[*（(]|\*[^*\n]+ [^*\n]+\*")
_STORY_SHARE = 0.3
"""Of an assistant's messages, this share must have quotations or actions before it is read as telling a story."""
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_MARKUP_LINE = re.compile(r"^[\W_]*$")


def passages_of(messages: Sequence[Message], previous_summary: str | None, language: Language) -> list[Passage]:
    """Return all passages of an earlier summary and of `messages`, in order, the files that were touched last."""
    speakers = Speakers(messages, language)
    technical = any(isinstance(part, ToolCall | ToolResult) for message in messages for part in message.parts)
    acting = messages if technical else ()
    tools = ToolLines(acting, language)
    reporting = technical or _tells_a_story(messages)
    earlier = list(_earlier(previous_summary, speakers)) if previous_summary else []
    found = [passage for passage in earlier if not is_file_label(passage.speaker)]
    after_error = False
    for index, message in enumerate(messages):
        of_message = list(_of_message(index, message, speakers, tools, (technical, reporting), after_error))
        found.extend(of_message)
        if message.role == "tool":
            after_error = after_error or any(passage.section == "errors" for passage in of_message)
        else:
            after_error = False
    found.extend(tools.files(acting, (passage for passage in earlier if is_file_label(passage.speaker))))
    return found or list(raw_passages(messages, speakers.tool(None)))


def conversation_language(messages: Iterable[Message], previous_summary: str | None = None) -> Language:
    """Return the language that the people of a conversation use; tool output does not count."""
    spoken = [message.text for message in messages if message.role in {"user", "assistant"}]
    return language_of(spoken or [previous_summary or ""])


def decides(text: str) -> bool:
    """Return whether a text speaks of a decision, a cause or something to remember."""
    lowered = text.lower()
    return any(word in lowered for word in _DECISIONS)


def _wishes(sentence: str) -> bool:
    lowered = sentence.lower()
    likely = not sentence.isascii() or _WISH_WORD.search(lowered)
    return bool(likely) and _WISH.search(sentence) is not None


def _tells_a_story(messages: Sequence[Message]) -> bool:
    """Whether the assistant plays a role: it tells what happens, instead of advising and repeating."""
    told = [_NARRATES.search(message.text) is not None for message in messages if message.role == "assistant"]
    return sum(told) > _STORY_SHARE * len(told)


def _of_message(
    index: int, message: Message, speakers: Speakers, tools: ToolLines, nature: tuple[bool, bool], after_error: bool
) -> Iterator[Passage]:
    for part in message.parts:
        match part:
            case Text(text=text):
                yield from _spoken(index, message, text, speakers, nature, after_error)
            case ToolCall():
                yield from tools.call(index, part, speakers.split(message, "")[0])
            case ToolResult():
                yield from tools.result(index, part, speakers.tool(tools.name(part)))
            case Reasoning() | Image() | Opaque():
                pass
            case _:
                assert_never(part)


def _spoken(
    index: int, message: Message, text: str, speakers: Speakers, nature: tuple[bool, bool], after_error: bool
) -> Iterator[Passage]:
    """Sentences of a speech. In work with tools, what an agent says right after an error is about that error."""
    speaker, said = speakers.split(message, text)
    technical, reporting = nature
    advice = ANSWER if not reporting and message.role == "assistant" and speakers.is_role(speaker) else 1.0
    about_error = after_error and message.role == "assistant"
    for sentence, is_code in _sentences_and_code(said):
        clean = shorten(sentence) if is_code else tidy(sentence)
        if not clean:
            continue
        weight = _factor(clean) * advice * (DECIDED if technical and decides(clean) else 1.0)
        trouble = about_error or (technical and TROUBLE.search(clean) is not None)
        yield Passage(
            message=index,
            speaker=speaker,
            text=clean,
            section="errors" if trouble else "happened",
            factor=CODE if is_code or sentence[0] == "|" else weight,
            wish=message.role == "user" and not is_code and _wishes(clean),
            alone=is_code or sentence[0] == "|",
        )
        about_error = False


def _sentences_and_code(text: str) -> Iterator[tuple[str, bool]]:
    """Sentences of prose; of code in fences the lines that report an error, or the first where there is nothing else."""
    if "```" not in text and "~~~" not in text:
        yield from ((sentence, False) for sentence in sentences(text))
        return
    inside = prose = False
    code: list[str] = []
    for line in text.splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            for sentence in sentences(line):
                prose = True
                yield sentence, False
        elif line.strip():
            code.append(line.strip())
    wrong = [line for line in code if WRONG_LINE.search(line)]
    yield from ((line, True) for line in wrong[-2:] or ([] if prose else code[:1]))


def tidy(sentence: str) -> str:
    """Return a sentence without leading interjections and vocatives, marks of lists, tables and bold type, trailing emoji."""
    rest = sentence.strip().lstrip("-*•>|# ").replace("**", "").rstrip("| ")
    if rest[:1].isdigit() and (number := _NUMBER.match(rest)):
        rest = rest[number.end() :]
    if not rest[-1:].isascii():
        rest = _TRAILING.sub("", rest)
    match = _LEADING.match(rest)
    if match:
        rest = rest[match.end() :]
        rest = rest[:1].upper() + rest[1:]
    if not rest[:1].isalnum() and _MARKUP_LINE.match(rest):
        return ""
    return _balanced(" ".join(rest.split()))


def _balanced(text: str) -> str:
    """Return the text without quotation marks at its ends whose partners are in other sentences."""
    if text.isascii():
        return text
    for opening, closing in _QUOTES:
        if text.startswith(opening) and closing not in text:
            text = text[1:]
        elif text.endswith(closing) and opening not in text:
            text = text[:-1]
    return text


def _factor(sentence: str) -> float:
    if sentence.endswith(("?", "？")):
        return QUESTION
    if sentence.endswith((":", "：")):
        return LEAD_IN
    return OWN if _OWN.match(sentence) else 1.0


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
        if colon and is_file_label(label):
            yield from (Passage(message=EARLIER + block, speaker=label, text=path) for path in rest.split("; ") if path)
            continue
        speaker, said = (label, rest) if colon and label in known else ("", line)
        for sentence in sentences(said):
            clean = tidy(sentence)
            if clean:
                at: Section = "happened" if section == "state" else section
                yield Passage(message=EARLIER + block, speaker=speaker, text=clean, section=at, factor=_factor(clean))
