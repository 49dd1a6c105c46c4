"""Which writing system a text is in: character classes shared by terms and sentences, and the language of headings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["en", "zh"]

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u3005\u3007"
KANA = "\u3041-\u3096\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
CJK = HAN + KANA + HANGUL
"""Scripts whose words are not set apart by blanks, or whose words carry particles (Korean), as the inside of a class."""

_HAN = re.compile(f"[{HAN}]")
_KANA_HANGUL = re.compile(f"[{KANA}{HANGUL}]")
_LATIN_WORD = re.compile(r"[A-Za-z]{2,}")
_ENOUGH = 20_000


def language_of(texts: Iterable[str]) -> Language:
    """Return "zh" where Han characters outnumber half the Latin words (and kana or hangul do not), else "en".

    Reads at most the first 20,000 characters: enough to tell, whatever the length.
    """
    han = other = latin = seen = 0
    for text in texts:
        piece = text[: _ENOUGH - seen]
        seen += len(piece)
        if not piece.isascii():
            han += len(_HAN.findall(piece))
            other += len(_KANA_HANGUL.findall(piece))
        latin += len(_LATIN_WORD.findall(piece))
        if seen >= _ENOUGH:
            break
    return "zh" if han > latin / 2 and han > 2 * other else "en"
