"""The policy of a compaction: every number and switch that the runtime decides by, as one frozen value.

Sessions and scenarios (config) are two ways to write one down.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from turnfold.core.budget import SUMMARY_SHARE
from turnfold.core.plan import InputProtocol, LengthPolicy, OutputFormat
from turnfold.core.planners.mask_tool_results import KEEP_TOOL_RESULTS
from turnfold.core.planners.sliding_window import MIN_HEADROOM_TURNS, PERCENTAGE
from turnfold.messages.model import Role

MIN_SUMMARY_ALLOWANCE = 120
"""Tokens that the default allowance does not go below: the envelope takes about half of them."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How to compact. Tokens, characters and ms as named; the defaults are a session's (SPEC §4, §5, §6, §10).

    `planner` is `sliding_window` (falls back to `all`), `all`, or `bounded_recent`. `floor_aware=False` plans exactly as
    the agent seed does. `max_summary_tokens` None is 10 % of the window, at least 120, envelope included. `summary_form` is the agent's
    JSON envelope or the plain block of roleplay prompts; `stats_in_text` adds the statistics to the envelope.
    `fallback_on_failure`: whether the deterministic summarizer steps in when the model failed and the request does not
    fit; without it the oldest groups are left out of that turn.
    """

    planner: Literal["sliding_window", "all", "bounded_recent"] = "sliding_window"
    floor_aware: bool = True
    percentage: float = PERCENTAGE
    min_headroom_turns: int = MIN_HEADROOM_TURNS
    mask_tool_results: bool = True
    keep_tool_results: int = KEEP_TOOL_RESULTS
    keep_last_groups: int = 2
    max_summary_tokens: int | None = None
    clip_chars: int = 50_000
    input_protocol: InputProtocol = "transcript"
    output_format: OutputFormat = "plain_text"
    length_policy: LengthPolicy = "accept_bounded"
    segment_content_tokens: int | None = None
    min_generation_tokens: int = 0
    max_candidate_attempts: int = 24
    max_model_calls: int = 12
    max_compaction_ms: int = 120_000
    summary_role: Role = "user"
    summary_form: Literal["agent", "plain"] = "agent"
    stats_in_text: bool = False
    fallback_on_failure: bool = True

    def allowance(self, context_window: int) -> int:
        """Return what the summary message may take at most, in tokens."""
        if self.max_summary_tokens is not None:
            return self.max_summary_tokens
        return max(MIN_SUMMARY_ALLOWANCE, math.floor(context_window * SUMMARY_SHARE))
