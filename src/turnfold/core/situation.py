"""The situation before a model call: everything the runtime decides from, and the views before and after a plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from turnfold.core.checkpoint import Checkpoint, Mask
from turnfold.core.groups import closed_groups, open_request
from turnfold.core.plan import Plan
from turnfold.core.system_prompt import CompiledPrompt
from turnfold.core.view import ViewParts, apply_masks, render_view
from turnfold.messages.model import Message, Tool

TRANSIENT_KINDS = frozenset({"memory_update", "reminder"})
"""Rows that a compaction makes obsolete: the recompiled prompt and restored reminders say it anew (SPEC §12)."""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known before a call.

    `fixed` is the fixed prompt as sent so far, `fixed_after` what it becomes at a compaction (None: the same).
    `summary` is the message that shows the checkpoint's summary. `shown_pins` are the covered pins in view now,
    `covered_pins` all covered messages that are pinned by now, `pinned` every pinned id. `request` is the covered
    request of an open turn. `history` holds the rows after the coverage in order, without folded rows and without
    turnfold's own summaries; `folded` are the ids of the folded rows among them. `restored_after` are reminders to put back at a compaction, `prompt_after` is the prompt that `fixed_after` shows.
    `groups` are the caller's
    explicit groups over the history, None to derive them.
    """

    fixed: tuple[Message, ...] = ()
    fixed_after: tuple[Message, ...] | None = None
    tools: tuple[Tool, ...] = ()
    checkpoint: Checkpoint | None = None
    summary: Message | None = None
    shown_pins: tuple[Message, ...] = ()
    covered_pins: tuple[Message, ...] = ()
    pinned: frozenset[str] = frozenset()
    request: Message | None = None
    history: tuple[Message, ...] = ()
    folded: tuple[str, ...] = ()
    injected: tuple[Message, ...] = ()
    incoming: tuple[Message, ...] = ()
    restored_after: tuple[Message, ...] = ()
    prompt_after: CompiledPrompt | None = None
    groups: tuple[tuple[int, int], ...] | None = None

    @property
    def masks(self) -> tuple[Mask, ...]:
        """The masks in force."""
        return self.checkpoint.masks if self.checkpoint else ()

    @property
    def masks_next(self) -> tuple[Mask, ...]:
        """The masks in force after a compaction: what was pinned since shows again."""
        return tuple(mask for mask in self.masks if mask.message_id not in self.pinned)

    @property
    def fixed_next(self) -> tuple[Message, ...]:
        """The fixed prompt after a compaction."""
        return self.fixed if self.fixed_after is None else self.fixed_after

    def planning_rows(self) -> tuple[Message, ...]:
        """Return the history that planners see: messages and foreign summaries."""
        return _lasting(self.history)

    def closed_groups(self) -> tuple[tuple[int, int], ...]:
        """Return the groups that may be compacted as a whole: the caller's, else the closed ones of the planning rows."""
        return closed_groups(self.planning_rows()) if self.groups is None else self.groups

    def covered_request(self) -> Message | None:
        """Return the open turn's request where an earlier compaction covered it: every view shows it apart from the history."""
        request = self.open_request()
        if request is None or request is not self.request:
            return None
        return request if _absent(request, self.covered_pins) else None

    def open_request(self) -> Message | None:
        """Return the request that must stay in view because its turn has no final answer yet."""
        if any(message.role == "user" for message in self.incoming):
            return None
        rows = ((self.request,) if self.request else ()) + self.planning_rows()
        index = open_request(rows)
        return None if index is None else rows[index]

    def untouchable(self) -> tuple[tuple[str, tuple[Message, ...]], ...]:
        """Return what no compaction can touch: the floor's messages by the names that errors give them."""
        request = self.covered_request()
        return (
            ("the system prompt", self.fixed_next),
            ("the pinned messages", (*self.covered_pins, *(row for row in self.history if row.id in self.pinned))),
            ("the injected content", self.injected),
            ("the open turn's request", (request,) if request else ()),
            ("the restored reminders", self.restored_after),
            ("the incoming turn", self.incoming),
        )

    def parts_before(self) -> ViewParts:
        """Return the view as it is without a new compaction."""
        return ViewParts(
            fixed=self.fixed,
            pins=self.shown_pins,
            summary=self.summary,
            request=self.request,
            history=apply_masks(self.history, self.masks),
            injected=self.injected,
            incoming=self.incoming,
        )

    def parts_after(self, plan: Plan, summary: Message) -> ViewParts:
        """Return the view in which `summary` stands for everything before the plan's cut."""
        rows = self.planning_rows()
        covered, kept = rows[: plan.cutoff_index], rows[plan.cutoff_index :]
        pins, request = self.pins_after(covered), self.open_request()
        return ViewParts(
            fixed=self.fixed_next,
            pins=pins,
            summary=summary,
            request=request if request is not None and _absent(request, (*pins, *kept)) else None,
            history=apply_masks(kept, self.masks_next),
            injected=self.injected,
            incoming=_lasting(self.incoming),
            restored=self.restored_after,
        )

    def parts_masked(self, masks: tuple[Mask, ...], summary: Message | None) -> ViewParts:
        """Return the view in which only masks are added: nothing more is covered, but the prompt is recompiled.

        `summary` is the message that shows the old summary, as the checkpoint with these masks makes it.
        """
        return ViewParts(
            fixed=self.fixed_next,
            pins=self.covered_pins,
            summary=summary,
            request=self.request,
            history=apply_masks(self.planning_rows(), masks),
            injected=self.injected,
            incoming=_lasting(self.incoming),
            restored=self.restored_after,
        )

    def pins_after(self, covered: Iterable[Message]) -> tuple[Message, ...]:
        """Return the pinned messages that stand before the summary once `covered` is covered too."""
        return (*self.covered_pins, *(message for message in covered if message.id in self.pinned))

    def verbatim_after(self, parts: ViewParts, shown_before: Collection[str]) -> tuple[Message, ...]:
        """Return what must stand in a view of `parts` as it is: fixed prompt, pins, an open turn's request, incoming turn.

        A pin that is repaired wherever it stands (a result without its call becomes text) cannot be among them: covered
        ones show that when rendered alone, kept ones are not among the ids `shown_before`.
        """
        covered = {pin.id: pin for pin in parts.pins}
        whole = render_view(ViewParts(pins=parts.pins)).messages
        kept = (row for row in self.planning_rows() if row.id in self.pinned and row.id not in covered)
        request = self.open_request()
        return (
            *self.fixed_next,
            *(pin for pin in whole if covered.get(pin.id) is pin),
            *(row for row in kept if row.id in shown_before),
            *((request,) if request else ()),
            *_lasting(self.incoming),
        )

    def folded_ids(self) -> tuple[str, ...]:
        """Return the ids of all transient rows after the old coverage: obsolete once a compaction is made now."""
        transient = (row.id for row in (*self.history, *self.incoming) if row.kind in TRANSIENT_KINDS)
        return (*self.folded, *transient)


def _absent(message: Message, rows: tuple[Message, ...]) -> bool:
    return all(row.id != message.id for row in rows)


def _lasting(rows: tuple[Message, ...]) -> tuple[Message, ...]:
    return tuple(row for row in rows if row.kind not in TRANSIENT_KINDS)
