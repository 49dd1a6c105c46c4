"""Reads the parts of a Markdown page that can be wrong: fenced blocks, headings and links."""

import re
from collections.abc import Iterator
from typing import NamedTuple

FENCE = re.compile(r"^(?P<indent>\s*)(?P<fence>`{3,}|~{3,})\s*(?P<language>[\w+-]*)(?P<rest>[^`]*)$")
HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$")
COMMENT = re.compile(r"^\s*<!--\s*(.*?)\s*-->\s*$")
LINK = re.compile(r"(?<!\\)\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^\s{0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s+\".*\")?\s*$")
HTML_LINK = re.compile(r"\b(?:href|src)=\"([^\"]+)\"")
CODE_SPAN = re.compile(r"(`+)(.+?)\1")


class Block(NamedTuple):
    """A fenced block: its language, text, the line of its first text line (from 1) and the comment directly above."""

    language: str
    text: str
    line: int
    comment: str

    @property
    def not_run(self) -> str | None:
        """The reason why the block is not run; empty when none was given, None when the block is to be run."""
        match = re.fullmatch(r"not run:?\s*(.*)", self.comment)
        return match[1] if match else None


class Heading(NamedTuple):
    """A heading: level 1 to 6, its text as written, its line (from 1)."""

    level: int
    text: str
    line: int


class Page(NamedTuple):
    """A page taken apart; `prose` is its text with the fenced blocks blanked, line for line."""

    blocks: tuple[Block, ...]
    headings: tuple[Heading, ...]
    links: tuple[str, ...]
    prose: str


def read_page(text: str) -> Page:
    """Take a page apart; an unclosed fence is a ValueError naming its line."""
    blocks, prose = _split(text.splitlines())
    headings = tuple(
        Heading(len(match[1]), match[2], number)
        for number, line in enumerate(prose, 1)
        if (match := HEADING.match(line)) is not None
    )
    return Page(tuple(blocks), headings, tuple(_links(prose)), "\n".join(prose))


def _split(lines: list[str]) -> tuple[list[Block], list[str]]:
    blocks: list[Block] = []
    prose: list[str] = []
    position = 0
    while position < len(lines):
        match = FENCE.match(lines[position])
        if match is None:
            prose.append(lines[position])
            position += 1
            continue
        end = _closing(lines, position, match["fence"])
        indent = len(match["indent"])
        body = "".join(line[min(indent, len(line) - len(line.lstrip())) :] + "\n" for line in lines[position + 1 : end])
        blocks.append(Block(match["language"], body, position + 2, _comment_above(lines, position)))
        prose.extend([""] * (end + 1 - position))
        position = end + 1
    return blocks, prose


def _closing(lines: list[str], start: int, fence: str) -> int:
    for number in range(start + 1, len(lines)):
        line = lines[number].strip()
        if len(line) >= len(fence) and set(line) == {fence[0]}:
            return number
    raise ValueError(f"line {start + 1}: the fence is never closed")


def _comment_above(lines: list[str], position: int) -> str:
    match = COMMENT.match(lines[position - 1]) if position else None
    return match[1] if match else ""


def _links(prose: list[str]) -> Iterator[str]:
    for line in prose:
        bare = CODE_SPAN.sub("", line)
        yield from LINK.findall(bare)
        yield from REFERENCE.findall(bare)
        yield from HTML_LINK.findall(bare)


def anchors(page: Page) -> set[str]:
    """The anchors that GitHub gives to a page's headings, with its `-1`, `-2` for repeated ones."""
    seen: dict[str, int] = {}
    found = set()
    for heading in page.headings:
        slug = _slug(heading.text)
        repeated = seen.get(slug, 0)
        seen[slug] = repeated + 1
        found.add(f"{slug}-{repeated}" if repeated else slug)
    return found


def _slug(heading: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")


def section(page: Page, heading: Heading) -> str:
    """The prose from a heading to the next one of its level or above; fenced blocks not included."""
    later = (other.line for other in page.headings if other.line > heading.line and other.level <= heading.level)
    lines = page.prose.splitlines()
    return "\n".join(lines[heading.line - 1 : next(later, len(lines) + 1) - 1])


def code_spans(text: str) -> list[str]:
    """What stands between backticks in prose."""
    return [span.strip() for _, span in CODE_SPAN.findall(text)]
