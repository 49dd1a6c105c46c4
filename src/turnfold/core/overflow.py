"""Recognizing that a request was larger than a model's window, by the endpoint's words, its code or its HTTP status.

Every provider says it differently, and some servers answer with a plain 400 or 500. What merely limits the rate is not
an overflow: waiting cures it, compacting does not.
"""

from __future__ import annotations

import re

CODES = frozenset(
    {
        "context_length_exceeded",
        "context_window_exceeded",
        "model_context_window_exceeded",
        "exceed_context_size_error",
        "request_too_large",
        "input_too_long",
        "prompt_too_long",
        "string_above_max_length",
        "max_input_tokens_exceeded",
        "max_tokens_exceeded",
    }
)
"""Typed error codes that mean overflow: OpenAI and its imitators, Anthropic, llama.cpp, Azure."""

_WAYS_TO_SAY_IT = (
    r"context[_ ](?:window|size|length|limit)(?![a-z])",
    r"max(?:imum)?[_ ](?:context|prompt|input|model)[_ ]len(?:gth)?(?![a-z])",
    r"exceed(?:s|ed|ing)?[_ ](?:the |its |your )?(?:available |maximum |model'?s? )*context(?![a-z])",
    r"\b(?:prompt|input|request|message|conversation|context)s? (?:is|are|was|were) too (?:long|large)",
    r"\b(?:prompt|input|request|context|request entity)[_ ]too[_ ](?:long|large)",
    r"\btoo many (?:input |prompt )?tokens\b",
    r"\breduce the (?:length|size|number of tokens)\b",
    r"\b(?:input|prompt) (?:token count|tokens?|length)\b.{0,60}\bexceed",
    r"\bexceed(?:s|ed)?\b.{0,40}\b(?:maximum number of tokens|token limit|max(?:imum)?[_ ](?:input[_ ])?tokens)",
    r"\brange of input length should be\b",
    r"\btoken count\b.{0,40}\bmodel only supports\b",
    r"`inputs`.{0,40}\bmust (?:be|have)\b",
    r"\btoken limit exceeded\b",
    r"(?:上下文|输入|提示词?|prompt|请求)[^。\n]{0,20}(?:超长|过长|太长|超[过出]|超限)",
)
_SAYS_SO = re.compile("|".join((*sorted(CODES), *_WAYS_TO_SAY_IT)), re.IGNORECASE)
_LIMITS_THE_RATE = re.compile(
    r"per[ _](?:minute|min|second|hour|day)\b|\brate[ _]limit|\bwait before\b|\bquota\b|\bthrottl|请求过于频繁|限流",
    re.IGNORECASE,
)
_TOO_LARGE_EVEN_ALONE = re.compile(r"\brequest too large\b|\breduce the length\b", re.IGNORECASE)
_OTHER_STATUS = frozenset({401, 403, 404})


def says_overflow(message: str) -> bool:
    """Whether an endpoint's words say that the request is larger than the window."""
    if _LIMITS_THE_RATE.search(message) and not _TOO_LARGE_EVEN_ALONE.search(message):
        return False
    return _SAYS_SO.search(message) is not None


def is_overflow(message: str, *, status: int | None = None, code: str | None = None) -> bool:
    """Whether an error is an overflow, by its typed `code`, its HTTP `status` (413 alone says it) or its words."""
    if status in _OTHER_STATUS:
        return False
    return status == 413 or code in CODES or says_overflow(message)
