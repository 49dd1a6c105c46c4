"""Planners: pure functions from messages and their token counts to a Plan. One module each.

They see token counts as integers, never a tokenizer. `all` is the fallback of `sliding_window`; `bounded_recent` gives a
list of candidates; `mask_tool_results` runs before any of them.
"""

from turnfold.core.planners.all import plan_all
from turnfold.core.planners.bounded_recent import plan_bounded_recent
from turnfold.core.planners.mask_tool_results import MaskCandidate, plan_masks
from turnfold.core.planners.sliding_window import WindowGoal, clamp_percentage, plan_floor_aware, plan_parity

__all__ = [
    "MaskCandidate",
    "WindowGoal",
    "clamp_percentage",
    "plan_all",
    "plan_bounded_recent",
    "plan_floor_aware",
    "plan_masks",
    "plan_parity",
]
