"""SillyTavern chats, read only: a header line, then one message a line.

`is_system` means that a message is hidden from the model, not that the system said it. Other swipes of a message become branches.
Messages have no ids; theirs are derived from what they and everything before them say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from msgspec.structs import replace

from turnfold.messages.model import Image, Message, Part, Reasoning, Role, Text
from turnfold.transcripts.document import Entry, Event, Forked, Problem, Skipped, Start, SummaryBoundary, opaque_row
from turnfold.transcripts.naming import Namer, branch_name
from turnfold.transcripts.openai_chat_messages import image_of
from turnfold.transcripts.reading import Row, epoch_ms, extras, keep, rows, text_of

FORMAT: Final = "sillytavern"
_KNOWN: Final = frozenset(
    {"name", "is_user", "is_system", "send_date", "mes", "extra", "swipe_id", "swipes", "swipe_info"}
)
_EXTRA: Final = frozenset({"memory", "reasoning", "model"})


def recognizes(value: Any) -> bool:
    """Whether one row of a file is in this format."""
    if not isinstance(value, dict):
        return False
    header = "character_name" in value and ("user_name" in value or "chat_metadata" in value)
    return header or ("mes" in value and ("is_user" in value or "send_date" in value))


def events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Yield the conversation of a file, one message at a time. Memory: the longest line."""
    chat: _Chat | None = None
    for row in rows(chunks):
        if isinstance(row, Problem):
            yield row
            continue
        is_header = isinstance(row.value, dict) and "mes" not in row.value and "character_name" in row.value
        if chat is None:
            chat = _Chat()
            yield _start(row.value if is_header else {})
        if not is_header:
            yield from chat.take(row)


def _start(header: dict[str, Any]) -> Start:
    metadata = header.get("chat_metadata")
    integrity = metadata.get("integrity") if isinstance(metadata, dict) else None
    return Start(
        format=FORMAT,
        conversation_id=text_of(integrity),
        title=text_of(header.get("character_name")),
        metadata={FORMAT: keep(header)} if header else {},
    )


class _Chat:
    """The messages of one chat, in order."""

    def __init__(self) -> None:
        self.namer = Namer(FORMAT)
        self.last: str | None = None

    def take(self, row: Row) -> Iterator[Event]:
        value = row.value
        if not isinstance(value, dict) or "mes" not in value:
            yield opaque_row(row.place, value, self.last)
            return
        if not isinstance(value["mes"], str):
            yield Problem(place=row.place, reason="its text (mes) is not text", cure="Repair the line or remove it.")
            return
        message = _message(value)
        others = list(_other_swipes(value, message))
        swipes = [(self.namer.name_swipe(other, number), other) for number, other in others]
        before, self.last = self.last, self.namer.name(message)
        yield Entry(message=replace(message, id=self.last), place=row.place)
        for name, other in swipes:
            branch = branch_name(name)
            yield Forked(name=branch, after=before)
            yield Entry(message=replace(other, id=name), branch=branch, place=row.place)
        if _blank_swipes(value):
            yield Skipped(kind="swipe without text")
        yield from self.summary(_extra(value), row.place)

    def summary(self, extra: dict[str, Any], place: str) -> Iterator[Event]:
        """Yield the summary that an extension kept with this message: it covers the chat up to and including it."""
        text = text_of(extra.get("memory"))
        if text is None or self.last is None:
            return
        record = {"compaction": {"summary": text}}
        message = Message(id="", role="user", kind="summary", parts=(Text(text=text),), metadata=record)
        covered, name = self.last, self.namer.name(message)
        yield Entry(message=replace(message, id=name), place=place)
        yield SummaryBoundary(summary_id=name, last_id=covered)


def _extra(value: dict[str, Any]) -> dict[str, Any]:
    extra = value.get("extra")
    return extra if isinstance(extra, dict) else {}


def _message(value: dict[str, Any]) -> Message:
    extra = _extra(value)
    own = extras(value, _KNOWN)
    rest = extras(extra, _EXTRA)
    if rest:
        own["extra"] = rest
    metadata: dict[str, Any] = {FORMAT: own} if own else {}
    if text_of(value.get("name")):
        metadata["name"] = value["name"]
    if value.get("is_system") is True:
        metadata["hidden"] = True
    return Message(
        id="",
        role=_role(value, extra),
        parts=_parts(value["mes"], extra),
        created_at=send_date_ms(value.get("send_date")),
        model=text_of(extra.get("model")),
        metadata=metadata,
    )


def _role(value: dict[str, Any], extra: dict[str, Any]) -> Role:
    if extra.get("type") == "narrator":
        return "system"
    return "user" if value.get("is_user") is True else "assistant"


def _parts(text: str, extra: dict[str, Any]) -> tuple[Part, ...]:
    thought = text_of(extra.get("reasoning"))
    parts: list[Part] = [Reasoning(text=thought)] if thought else []
    parts.append(Text(text=text))
    url = text_of(extra.get("image"))
    if url and url.startswith(("data:", "http://", "https://")):
        image = image_of(url, None)
        parts.append(image if image.data is not None else Image(url=url))
    return tuple(parts)


def _other_swipes(value: dict[str, Any], chosen: Message) -> Iterator[tuple[int, Message]]:
    """Yield (number, message) for each version of a message that was not chosen. `mes` decides: it may have been edited."""
    swipes, infos = value.get("swipes"), value.get("swipe_info")
    if not isinstance(swipes, list):
        return
    for number, text in enumerate(swipes):
        if not isinstance(text, str) or not text.strip() or text == value["mes"]:
            continue
        info = infos[number] if isinstance(infos, list) and number < len(infos) else None
        info = info if isinstance(info, dict) else {}
        extra = _extra(info)
        metadata = {**chosen.metadata, FORMAT: {"swipe": number}}
        yield (
            number,
            Message(
                id="",
                role=chosen.role,
                parts=_parts(text, extra),
                created_at=send_date_ms(info.get("send_date")),
                model=text_of(extra.get("model")),
                metadata=metadata,
            ),
        )


def _blank_swipes(value: dict[str, Any]) -> bool:
    swipes = value.get("swipes")
    return isinstance(swipes, list) and any(not isinstance(text, str) or not text.strip() for text in swipes)


_AT: Final = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2}) ?@ ?(\d{1,2})h ?(\d{1,2})m ?(\d{1,2})s(?: ?(\d{1,3})ms)?")
_SPOKEN: Final = re.compile(r"([A-Z][a-z]+) (\d{1,2}), (\d{4}) (\d{1,2}):(\d{2}) ?([ap])m", re.IGNORECASE)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def send_date_ms(value: Any) -> int | None:
    """Return a message's date as UTC ms, None when it is not one. Dates without a zone are taken as UTC.

    In: a number of ms, ISO 8601, `2026-10-05 @09h 30m 00s 123ms`, or `December 31, 2025 3:12pm`.
    """
    if not isinstance(value, str):
        return epoch_ms(value)
    if match := _AT.fullmatch(value.strip()):
        year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
        return _ms((year, month, day, hour, minute, second), int(match[7] or 0))
    if (match := _SPOKEN.fullmatch(value.strip())) and match[1][:3].lower() in _MONTHS:
        hour = int(match[4]) % 12 + (12 if match[6].lower() == "p" else 0)
        month = _MONTHS.index(match[1][:3].lower()) + 1
        return _ms((int(match[3]), month, int(match[2]), hour, int(match[5]), 0), 0)
    return epoch_ms(value)


def _ms(parts: tuple[int, int, int, int, int, int], milliseconds: int) -> int | None:
    try:
        return round(datetime(*parts, tzinfo=UTC).timestamp()) * 1000 + milliseconds
    except (ValueError, OverflowError):
        return None
