"""Hide old tool output behind one line each, before any summary is planned (SPEC §5, "Masking first")."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

KEEP_TOOL_RESULTS = 4


class MaskCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """One tool result in the view, oldest first: its tokens as shown and those of the placeholder it would leave."""

    message_id: str
    call_id: str
    tokens: int
    placeholder_tokens: int


def plan_masks(
    candidates: Sequence[MaskCandidate], *, excess: int, keep_last: int = KEEP_TOOL_RESULTS
) -> tuple[tuple[MaskCandidate, ...], int]:
    """Return the results to mask, oldest first, until `excess` tokens are saved, and how many are saved.

    The last `keep_last` results are never masked, nor one that is no larger than its placeholder.
    """
    chosen, saved = [], 0
    for candidate in candidates[: max(0, len(candidates) - keep_last)]:
        if saved >= excess:
            break
        gain = candidate.tokens - candidate.placeholder_tokens
        if gain > 0:
            chosen.append(candidate)
            saved += gain
    return tuple(chosen), saved
