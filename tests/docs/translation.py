"""Compares a page with its translation: what must be equal is what a reader copies and follows."""

from collections import Counter
from itertools import zip_longest

from tests.docs.markdown import Page

TRANSLATED_SUFFIX = ".zh-CN.md"


def differences(original: Page, translation: Page) -> list[str]:
    """Where the heading levels, the fenced blocks or the links of two pages differ; empty if nowhere."""
    return [*_headings(original, translation), *_blocks(original, translation), *_links(original, translation)]


def _headings(original: Page, translation: Page) -> list[str]:
    pairs = zip_longest(original.headings, translation.headings)
    return [
        f"heading {number}: {left and left.text!r} against {right and right.text!r}"
        for number, (left, right) in enumerate(pairs, 1)
        if left is None or right is None or left.level != right.level
    ][:1]


def _blocks(original: Page, translation: Page) -> list[str]:
    pairs = zip_longest(
        [(block.language, block.text) for block in original.blocks],
        [(block.language, block.text) for block in translation.blocks],
    )
    return [f"code block {number}: {a!r} against {b!r}" for number, (a, b) in enumerate(pairs, 1) if a != b]


def _links(original: Page, translation: Page) -> list[str]:
    left, right = _targets(original), _targets(translation)
    return [f"link only in the original: {link}" for link in (left - right).elements()] + [
        f"link only in the translation: {link}" for link in (right - left).elements()
    ]


def _targets(page: Page) -> Counter[str]:
    """Links by target; a page and its translation count as one, and so do the anchors in them, which are translated."""
    return Counter(link.partition("#")[0].replace(TRANSLATED_SUFFIX, ".md") for link in page.links)
