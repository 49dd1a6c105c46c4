"""What a planner decides and what a summarizer is asked: values that can be printed, dry-run, tested and stored."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from turnfold.messages.model import Message, Usage

Trigger: TypeAlias = Literal["context_pressure", "overflow", "manual", "advance"]
Mode: TypeAlias = Literal["sliding_window", "all", "bounded_recent", "mask"]
InputProtocol: TypeAlias = Literal["transcript", "harness_json_v1", "dream_text_v0", "automemory_recursive_v1"]
OutputFormat: TypeAlias = Literal["plain_text", "structured_json"]
LengthPolicy: TypeAlias = Literal["reject", "accept_bounded"]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Where to cut. `cutoff_index` messages from the front are summarized, the rest is kept.

    Tokens: `kept_tokens` of the kept messages, `target` what the view's history and summary together may take (None when
    the planner set none), `allowance` the most the summary message may take, envelope included. `excused` says why the
    window does not allow the target, where it does not.
    """

    mode: Mode
    cutoff_index: int
    kept_tokens: int
    target: int | None = None
    allowance: int = 0
    excused: str | None = None
    reasons: tuple[str, ...] = ()


class SummaryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a summarizer may need, and nothing about how to ask for it.

    `messages` are those that leave the context, in order, memory updates and reminders excluded. `groups` are their closed
    groups as half-open index ranges. `current_input` is the user's new line, which has not happened yet.
    `max_tokens` bounds the summary text under the runtime's counter, `max_chars` bounds it in characters;
    both are enforced by code after the answer. `frame` is an unguessable word that marks the transcript's ends.
    """

    messages: tuple[Message, ...]
    mode: Mode
    frame: str
    max_tokens: int
    max_chars: int
    previous_summary: str | None = None
    groups: tuple[tuple[int, int], ...] = ()
    current_input: str = ""
    focus: str | None = None
    input_protocol: InputProtocol = "transcript"
    output_format: OutputFormat = "plain_text"
    length_policy: LengthPolicy = "accept_bounded"
    segment_content_tokens: int | None = None
    tool_result_chars: int = 2000


class SummaryDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A summarizer's answer, before the runtime bounds and checks it.

    `structured` is the parsed object for `structured_json`. `not_shown` names covered material that the summarizer never
    saw. `usage` sums all calls.
    """

    text: str
    structured: dict[str, Any] | None = None
    model: str = ""
    prompt_hash: str = ""
    usage: Usage | None = None
    not_shown: tuple[str, ...] = ()
