"""What a compaction would store: the checkpoint for a plan's summary, or for masks alone."""

from __future__ import annotations

import msgspec

from turnfold.core.checkpoint import Audit, Checkpoint, Mask, NextCheckpoint, extend_coverage
from turnfold.core.plan import Plan, SummaryDraft
from turnfold.core.situation import Situation


def summary_checkpoint(
    situation: Situation, plan: Plan, upcoming: NextCheckpoint, audit: Audit, text: str, draft: SummaryDraft | None
) -> Checkpoint:
    """Return the checkpoint in which `text` stands for all that was covered before and for the plan's messages."""
    old, rows = situation.checkpoint, situation.planning_rows()
    covered, kept = rows[: plan.cutoff_index], {row.id for row in rows[plan.cutoff_index :]}
    request = situation.open_request()
    return Checkpoint(
        version=upcoming.version,
        parent_version=old.version if old else None,
        created_at=upcoming.created_at,
        fingerprint=upcoming.fingerprint,
        summary=text,
        summary_mode=plan.mode,
        structured=draft.structured if draft else None,
        summary_message_id=upcoming.summary_id,
        coverage=extend_coverage(old.coverage if old else None, covered),
        masks=tuple(mask for mask in situation.masks_next if mask.message_id in kept),
        pins=tuple(pin.id for pin in situation.pins_after(covered)),
        open_request_id=request.id if request is not None and request.id not in kept else None,
        folded=(*situation.folded_ids(), *(row.id for row in covered if row.kind == "summary")),
        prompt=situation.prompt_after,
        audit=audit,
    )


def masked_checkpoint(
    situation: Situation, upcoming: NextCheckpoint, audit: Audit, masks: tuple[Mask, ...]
) -> Checkpoint:
    """Return the checkpoint that hides more tool results: the old summary and coverage are carried over."""
    old, pins = situation.checkpoint, tuple(pin.id for pin in situation.covered_pins)
    request_id = situation.request.id if situation.request else None
    if old is None:
        return Checkpoint(
            version=upcoming.version,
            created_at=upcoming.created_at,
            fingerprint=upcoming.fingerprint,
            audit=audit,
            masks=masks,
            folded=situation.folded_ids(),
            prompt=situation.prompt_after,
        )
    return msgspec.structs.replace(
        old,
        version=upcoming.version,
        parent_version=old.version,
        audit=audit,
        masks=masks,
        pins=pins,
        open_request_id=request_id,
        folded=situation.folded_ids(),
        prompt=situation.prompt_after,
    )
