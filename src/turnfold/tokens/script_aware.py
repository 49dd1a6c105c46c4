"""An estimate for models whose vocabulary is not known: each script at its own price, in one pass.

Prices were fitted to o200k_base over the corpora of docs/tokens.md and then raised for Han, kana and hangul, because a
vocabulary that knows less Chinese must not be undercounted. Words of spaced scripts cost one token up to seven letters and
a quarter for each letter more; so joining two texts never adds more than one token to their sum.
"""

from __future__ import annotations

import math
import re

from turnfold.tokens.request_counter import RequestCounter

LETTERS_A_TOKEN = 7
LETTER_PRICE = 0.25
DIGITS_A_TOKEN = 3

_CLASSES: tuple[tuple[str, str, float], ...] = (
    ("han", "\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff", 0.92),
    ("kana", "\u3040-\u30ff\u31f0-\u31ff", 0.85),
    ("hangul", "\uac00-\ud7af\u1100-\u11ff\u3130-\u318f", 0.9),
    ("cjk_punctuation", "\u3000-\u303f\uff00-\uffef", 0.7),
    ("han_extended", "\U00020000-\U0003ffff", 3.5),
    ("cyrillic", "\u0400-\u052f", 0.4),
    ("greek", "\u0370-\u03ff", 0.55),
    ("hebrew_arabic", "\u0590-\u08ff", 0.5),
    ("indic_thai", "\u0900-\u0fff", 0.5),
    ("latin_extended", "\u00c0-\u024f\u1e00-\u1eff", 0.6),
    ("symbol", "\u0080-\u00bf\u02b0-\u036f\u2000-\u2bff\ufe00-\ufe0f", 1.1),
)
"""Name, characters and price a character. Whatever stands in none (emoji, rare scripts) costs `OTHER_PRICE`."""

OTHER_PRICE = 3.0
PUNCTUATION_PRICE, PUNCTUATION_MORE = 1.0, 0.25
LINE_BREAK_PRICE = 1.0
SPACES_PRICE = 0.25

_ASCII = (
    r"(?P<word>[A-Z]?[a-z]+|[A-Z]+)|(?P<digits>[0-9]+)|(?P<lines>[\r\n]+)|(?P<spaces>[\t ]{2,})|(?P<blank>[\t ])"
    r"|(?P<punctuation>[\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f\x00-\x08\x0b\x0c\x0e-\x1f]+)"
)
_TOKEN = re.compile(
    _ASCII + "".join(f"|(?P<{name}>[{characters}]+)" for name, characters, _ in _CLASSES) + "|(?P<other>.)", re.DOTALL
)
_PRICES = {name: price for name, _, price in _CLASSES} | {"other": OTHER_PRICE}


def estimate(text: str) -> int:
    """Return the estimated tokens of a text; at least 1 unless it is empty."""
    return math.ceil(sum(_price(match.lastgroup or "", match.end() - match.start()) for match in _TOKEN.finditer(text)))


def _price(kind: str, length: int) -> float:
    match kind:
        case "word":
            return 1 + LETTER_PRICE * max(0, length - LETTERS_A_TOKEN)
        case "blank":
            return 0.0
        case "digits":
            return math.ceil(length / DIGITS_A_TOKEN)
        case "punctuation":
            return PUNCTUATION_PRICE + PUNCTUATION_MORE * (length - 1)
        case "lines":
            return LINE_BREAK_PRICE
        case "spaces":
            return SPACES_PRICE
        case _:
            return _PRICES[kind] * length


def script_aware_counter() -> RequestCounter:
    """Return the estimating counter."""
    return RequestCounter("script_aware", estimate, exact=False)
