"""The sections of a summary that code writes and reads back: their headings in English and Chinese, and their layout.

A summary is Markdown: a heading line for each section, then its lines. Standing instructions and lookup hints are
written by code alone, at the end, so that the next compaction finds them again whoever wrote the rest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from turnfold.core.text.scripts import Language

Section: TypeAlias = Literal["goals", "happened", "details", "errors", "state", "instructions", "hints"]

SECTIONS: tuple[Section, ...] = ("goals", "happened", "details", "errors", "state", "instructions", "hints")

HEADINGS: dict[Language, dict[Section, str]] = {
    "en": {
        "goals": "High-level goals",
        "happened": "What happened",
        "details": "Important details",
        "errors": "Errors and fixes",
        "state": "Current state and next step",
        "instructions": "Standing instructions",
        "hints": "Lookup hints",
    },
    "zh": {
        "goals": "总体目标",
        "happened": "经过",
        "details": "重要细节",
        "errors": "错误与修复",
        "state": "当前状态与下一步",
        "instructions": "长期指示",
        "hints": "查找线索",
    },
}

HINT_SEPARATOR = "; "

_MARKUP = r"[\s#*_\d.、)）(（一二三四五六七八九十:：]*"
_NAMES = {name.casefold(): section for table in HEADINGS.values() for section, name in table.items()}
_HEADING = re.compile(f"{_MARKUP}({'|'.join(map(re.escape, _NAMES))}){_MARKUP}$", re.IGNORECASE)


class Parsed(msgspec.Struct, frozen=True, kw_only=True):
    """A summary taken apart: `body` without the two sections that code owns, and the items of those."""

    body: str
    instructions: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


def heading(section: Section, language: Language) -> str:
    """Return the heading line of a section."""
    return f"## {HEADINGS[language][section]}"


def section_of(line: str) -> Section | None:
    """Return the section that a heading line opens, whatever its markup and language, or None for any other line."""
    if len(line) > 60:
        return None
    match = _HEADING.match(line.strip())
    return _NAMES[match.group(1).casefold()] if match else None


def parse(summary: str) -> Parsed:
    """Take a summary apart. Any other heading ends a section; lines inside the two sections are items."""
    body: list[str] = []
    items: dict[Section, list[str]] = {"instructions": [], "hints": []}
    section: Section | None = None
    for line in summary.splitlines():
        opened = section_of(line)
        if opened is not None or line.lstrip().startswith("#"):
            section = opened
        if section not in items:
            body.append(line)
        elif opened is None and line.strip():
            _add_item(line, items[section])
    hints = tuple(hint for line in items["hints"] for hint in line.split(HINT_SEPARATOR.strip()) if hint.strip())
    return Parsed(
        body="\n".join(body).strip(),
        instructions=tuple(items["instructions"]),
        hints=tuple(hint.strip() for hint in hints),
    )


def _add_item(line: str, items: list[str]) -> None:
    """A line with a bullet begins an item, an indented one continues it: instructions may have several lines."""
    stripped = line.strip()
    if line.startswith("  ") and items:
        items[-1] += "\n" + stripped
    else:
        items.append(re.sub(r"^[-*•]\s+", "", stripped))


def item_line(text: str) -> str:
    """Return an item as a bullet; further lines of it are indented, so that `parse` keeps them together."""
    return "- " + text.strip().replace("\n", "\n  ")


def render(parsed: Parsed, language: Language) -> str:
    """Put a summary together: the body, the standing instructions (one bullet each), the hints (one line)."""
    blocks = [parsed.body] if parsed.body else []
    if parsed.instructions:
        blocks.append("\n".join([heading("instructions", language), *map(item_line, parsed.instructions)]))
    if parsed.hints:
        blocks.append(f"{heading('hints', language)}\n- {HINT_SEPARATOR.join(parsed.hints)}")
    return "\n".join(blocks)


def layout(lines: Sequence[tuple[Section, str]], language: Language) -> str:
    """Return lines under their headings, sections in the order of §6, lines in the order given."""
    blocks: list[str] = []
    for section in SECTIONS:
        own = [line for at, line in lines if at == section]
        if own:
            blocks.append("\n".join([heading(section, language), *own]))
    return "\n".join(blocks)
