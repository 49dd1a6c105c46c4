"""What JavaScript does with a string, written as slowly and plainly as can be: a list of UTF-16 code units."""


def units(text: str) -> list[int]:
    """Return the code units of a text; a character beyond the basic plane has two."""
    found: list[int] = []
    for character in text:
        point = ord(character)
        if point > 0xFFFF:
            found += [0xD800 + ((point - 0x10000) >> 10), 0xDC00 + ((point - 0x10000) & 0x3FF)]
        else:
            found.append(point)
    return found


def text(given: list[int]) -> str:
    """Return the text of some code units; two halves of a pair that meet are one character."""
    found, at = [], 0
    while at < len(given):
        unit, following = given[at], given[at + 1] if at + 1 < len(given) else 0
        if 0xD800 <= unit < 0xDC00 <= following < 0xE000:
            found.append(chr(0x10000 + ((unit - 0xD800) << 10) + (following - 0xDC00)))
            at += 2
        else:
            found.append(chr(unit))
            at += 1
    return "".join(found)


def js_slice(given: str, start: int, end: int | None = None) -> str:
    """Return `given.slice(start, end)`."""
    return text(units(given)[start:end])
