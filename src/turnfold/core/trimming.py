"""The last resort of one turn: leave the oldest whole groups out of the view. Nothing of it is stored (SPEC §10)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from turnfold.core.situation import Situation
from turnfold.core.view import ViewParts


def trim_oldest(situation: Situation, *, may_drop_summary: bool, skip: int = 0) -> Iterator[ViewParts]:
    """Yield ever smaller views: the oldest group left out, the oldest two, and so on; the first `skip` views are not made.

    Dropping uncovered history cuts the old summary's connection, so a view that does it shows no summary; without
    `may_drop_summary` a situation that has one yields nothing. Pinned messages stay, and so do memory updates and reminders.
    """
    if situation.summary is not None and not may_drop_summary:
        return
    rows, parts = situation.planning_rows(), situation.parts_before()
    for _, end in situation.closed_groups()[skip:]:
        dropped = {row.id for row in rows[:end]}
        yield msgspec.structs.replace(
            parts,
            pins=(*situation.shown_pins, *(row for row in rows[:end] if row.id in situation.pinned)),
            summary=None,
            history=tuple(row for row in parts.history if row.id not in dropped),
        )
