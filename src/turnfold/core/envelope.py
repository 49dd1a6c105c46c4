"""How a summary stands in the context: the agent's JSON alert and the plain block of roleplay prompts (SPEC §7).

The wording of the alert is held equal to the agent seed's. What the text says is for the model; the raw summary and
the statistics are kept in `metadata.compaction`, where programs read them.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from turnfold.core.plan import Mode
from turnfold.core.text.scripts import Language, language_of
from turnfold.messages.canonical import js_json
from turnfold.messages.model import Message

ALERT_TYPE = "system_alert"
_LEAD_IN = "The following is a summary of the previous messages:\n "
_BLOCK_TITLE: dict[Language, str] = {
    "en": "Summary of the earlier conversation (its messages are no longer shown):",
    "zh": "此前对话的摘要（原文不再显示）：",
}


class CompactionStats(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a compaction did, under the names that readers of the alert know. Tokens and counts of messages in context."""

    trigger: str
    context_tokens_before: int | None = None
    context_tokens_after: int | None = None
    context_window: int | None = None
    messages_count_before: int | None = None
    messages_count_after: int | None = None

    def record(self) -> dict[str, Any]:
        """Return the known numbers as a JSON object."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}

    @property
    def hidden(self) -> int | None:
        """By how many the messages in context became fewer, where both counts are known."""
        if self.messages_count_before is None or self.messages_count_after is None:
            return None
        return self.messages_count_before - self.messages_count_after


def alert_text(
    summary: str,
    mode: Mode,
    *,
    time_ms: int | None = None,
    stats: CompactionStats | None = None,
    stats_in_text: bool = False,
    hidden: int | None = None,
) -> str:
    """Return the agent form: one JSON object with `type`, `message`, `time`, and the statistics if `stats_in_text`.

    `time_ms` is UTC in ms; None leaves `time` out. `hidden` is how many messages left the context; by default what the
    statistics say.
    """
    count = hidden if hidden is not None else stats.hidden if stats else None
    alert: dict[str, Any] = {"type": ALERT_TYPE, "message": f"{_note(mode, count)}\n{_LEAD_IN}{summary}"}
    if time_ms is not None:
        alert["time"] = iso_time(time_ms)
    if stats_in_text and stats is not None:
        alert["compaction_stats"] = stats.record()
    return js_json(alert)


def _note(mode: Mode, hidden: int | None) -> str:
    if mode == "all":
        return "Note: prior messages have been hidden from view due to conversation memory constraints."
    if hidden is None:
        return (
            "Note: prior messages from the beginning of the conversation have been hidden from view due to "
            "conversation memory constraints."
        )
    return (
        f"Note: {hidden} messages from the beginning of the conversation have been hidden from view due to memory "
        "constraints."
    )


def iso_time(time_ms: int) -> str:
    """Return UTC ms as ISO 8601 with milliseconds and Z, as JavaScript writes it."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"


def plain_block(summary: str) -> str:
    """Return the roleplay form: a titled block of plain text."""
    return f"{_BLOCK_TITLE[language_of((summary,))]}\n{summary}"


def compaction_metadata(summary: str, stats: CompactionStats | None = None) -> dict[str, Any]:
    """Return what a summary message carries as `metadata["compaction"]`."""
    return {"summary": summary, "stats": stats.record()} if stats else {"summary": summary}


def raw_summary(message: Message) -> str | None:
    """Return the bare summary that a message carries, or None when it carries none.

    Found in the metadata; in a message of kind `summary` without it, inside the alert of its text, else the text itself.
    """
    compaction = message.metadata.get("compaction")
    if isinstance(compaction, dict) and isinstance(compaction.get("summary"), str):
        return str(compaction["summary"])
    if message.kind != "summary":
        return None
    return _out_of_alert(message.text)


def _out_of_alert(text: str) -> str:
    try:
        alert = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(alert, dict) or alert.get("type") != ALERT_TYPE or not isinstance(alert.get("message"), str):
        return text
    _, found, summary = alert["message"].partition(_LEAD_IN)
    return summary if found else str(alert["message"])
