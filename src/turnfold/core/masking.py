"""The line that stands for a masked tool result, the results that could be masked, and those to mask for a saving."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from turnfold.core.checkpoint import Mask
from turnfold.core.planners.mask_tool_results import MaskCandidate, plan_masks
from turnfold.core.situation import Situation
from turnfold.core.view import apply_masks
from turnfold.messages.model import Image, Message, Opaque, Text, ToolResult


def maskable(rows: Iterable[Message], masks: Iterable[Mask]) -> Iterator[tuple[Message, Mask]]:
    """Yield, oldest first, each tool result that is not masked yet, with the mask it would get."""
    masked = {(mask.message_id, mask.call_id) for mask in masks}
    names: dict[str, str] = {}
    for row in rows:
        names.update((call.id, call.name) for call in row.calls)
        for result in row.results:
            if (row.id, result.call_id) not in masked:
                text = placeholder(result, result.name or names.get(result.call_id, "tool"))
                yield row, Mask(message_id=row.id, call_id=result.call_id, placeholder=text)


def masks_to_save(
    situation: Situation,
    excess: int,
    *,
    keep_last: int,
    count: Callable[[Message], int],
    count_masked: Callable[[Message], int],
) -> tuple[Mask, ...] | None:
    """Return all masks of the view in which `excess` tokens are saved, oldest first; None where they do not save as much.

    Pinned results are never masked. `count` gives the tokens of a message as it is, `count_masked` those of a changed one.
    """
    rows = (row for row in situation.planning_rows() if row.id not in situation.pinned)
    found = {(mask.message_id, mask.call_id): (row, mask) for row, mask in maskable(rows, situation.masks)}
    candidates = [
        MaskCandidate(
            message_id=mask.message_id,
            call_id=mask.call_id,
            tokens=count(row),
            placeholder_tokens=count_masked(apply_masks((row,), (mask,))[0]),
        )
        for row, mask in found.values()
    ]
    chosen, saved = plan_masks(candidates, excess=excess, keep_last=keep_last)
    if not chosen or saved < excess:
        return None
    return (*situation.masks_next, *(found[each.message_id, each.call_id][1] for each in chosen))


def placeholder(result: ToolResult, tool: str) -> str:
    """Return one line: the tool, the size of what is hidden, and how to get it back."""
    characters = sum(len(part.text) for part in result.content if isinstance(part, Text))
    others = sum(isinstance(part, Image | Opaque) for part in result.content)
    size = f"{characters} characters" + (f" and {others} attachments" if others else "")
    error = ", an error" if result.is_error else ""
    return f"[{tool} output hidden to save space: {size}{error}. Recall it by call id {result.call_id}.]"
