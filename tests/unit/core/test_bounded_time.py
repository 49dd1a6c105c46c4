"""Text that repeats itself costs no more than other text of its length: nothing that reads it searches back and forth."""

import contextlib
from collections.abc import Callable
from time import process_time

import pytest

from turnfold.core.extract import extract
from turnfold.core.instructions import standing_instructions
from turnfold.core.overflow import says_overflow
from turnfold.core.plan import SummaryRequest
from turnfold.core.protocol_answers import Asked, accept
from turnfold.core.retention import extract_identifiers
from turnfold.core.transcript_lines import escape_role_lines
from turnfold.errors import SummaryRejectedError
from turnfold.messages.model import text_message

LENGTH = 16_000
REPEATED = (
    *"xX1 .,;:-_/\\#@$%~+=&?*!|<>()[]{}'\"`\n\t我。，“「😀",
    *("a ", "- ", "a/", "1.", "A1", "#1", "a@", "\n[", "\n[user", "http://", "0x", "::", "a:b:", "<think>", "```\n"),
    *(
        "sorry ",
        "do not ",
        "never always must ",
        "every single one of these must ",
        "in this project we ",
        "不要",
        "都要每次",
    ),
    *("Name Of ", "input token ", "here is the summary ", "以下是", '{"a":', "第一章", "二〇二六年"),
)
SHORT_WORDS = "The user asked to move port 5433 to https://example.org/a; never use 5432. "


def answered(text: str) -> None:
    """Have an answer judged in both formats."""
    for output_format in ("plain_text", "structured_json"):
        asked = Asked(instructions="i" * 400, shown="y" * 4_000, frame="f00", output_format=output_format)
        with contextlib.suppress(SummaryRejectedError):
            accept(text_message("m", "assistant", text), asked)


def extracted(text: str) -> None:
    """Have a text summarized by code."""
    messages = (text_message("m", "user", text),)
    request = SummaryRequest(messages=messages, mode="all", frame="f", max_tokens=200, max_chars=2_000)
    extract(request, lambda counted: -(-len(counted) // 4))


READERS: dict[str, Callable[[str], object]] = {
    "instructions": lambda text: standing_instructions((text_message("m", "user", text),)),
    "identifiers": lambda text: extract_identifiers((text_message("m", "user", text),)),
    "extract": extracted,
    "role lines": escape_role_lines,
    "answers": answered,
    "overflow": says_overflow,
}


def seconds(reader: Callable[[str], object], text: str) -> float:
    """Return the processor time of one reading."""
    started = process_time()
    reader(text)
    return process_time() - started


@pytest.mark.parametrize("name", READERS)
def test_repetition_costs_no_more_than_prose(name: str) -> None:
    """Of every pattern, the slowest takes at most some tens of times what prose takes; what searches back takes thousands."""
    reader = READERS[name]
    prose = (SHORT_WORDS * (LENGTH // len(SHORT_WORDS) + 1))[:LENGTH]
    reader(prose)
    allowed = 40 * max(seconds(reader, prose), 0.01)
    slow = {piece: took for piece in REPEATED if (took := seconds(reader, (piece * LENGTH)[:LENGTH])) > allowed}
    assert slow == {}
