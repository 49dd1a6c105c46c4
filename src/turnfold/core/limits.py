"""The bound on paid model calls that everything inside one compaction shares: retries, ladder steps, segments."""

from __future__ import annotations

from turnfold.errors import SummaryLimitError


class CallBudget:
    """Counts model calls against a limit. One object is handed down through one compaction; whoever calls takes first."""

    def __init__(self, max_calls: int | None = None) -> None:
        self.max_calls = max_calls
        self.used = 0

    @property
    def left(self) -> int | None:
        """Calls that may still be made, or None without a limit."""
        return None if self.max_calls is None else self.max_calls - self.used

    def take(self) -> None:
        """Count one call about to be made. Raises SummaryLimitError, before anything is paid, when none is left."""
        if self.max_calls is not None and self.used >= self.max_calls:
            raise SummaryLimitError(f"all {self.max_calls} model calls of this compaction are used", code="call_limit")
        self.used += 1
