"""The embedded default summarizer: extraction by code, no model, no cost, equal answers for equal requests."""

from __future__ import annotations

from collections.abc import Callable

from turnfold.core.extract import extract
from turnfold.core.limits import CallBudget
from turnfold.core.plan import SummaryDraft, SummaryRequest
from turnfold.errors import SummaryRejectedError


class ExtractiveSummarizer:
    """Summarizes by choosing whole sentences. `count_text` is the runtime's counter for bare text, in tokens."""

    name = "extractive"
    deterministic = True

    def __init__(self, count_text: Callable[[str], int]) -> None:
        self._count_text = count_text

    def generation_room(self, request: SummaryRequest) -> int | None:
        """None: it has no window."""
        return None

    async def summarize(self, request: SummaryRequest, calls: CallBudget) -> SummaryDraft:
        """Return the extract; no call is taken. SummaryRejectedError ("blank") where the messages say nothing."""
        text = extract(request, self._count_text)
        if not text:
            raise SummaryRejectedError("the covered messages hold no text that fits the limits", code="blank")
        return SummaryDraft(text=text)
