"""Gets one summary written for one plan: asks the summarizer within its bounds, then bounds and completes the answer.

Nothing depends on the model's obedience: length, instructions and identifiers are seen to by code (SPEC §6).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from turnfold.core.checkpoint import Retention
from turnfold.core.groups import closed_groups
from turnfold.core.limits import CallBudget
from turnfold.core.plan import Plan, SummaryDraft, SummaryRequest
from turnfold.core.policy import Policy
from turnfold.core.reasons import Reason
from turnfold.core.retention import complete_summary
from turnfold.core.situation import Situation
from turnfold.core.truncation import bound_summary, summary_char_limit
from turnfold.errors import ProviderError, SummaryError, SummaryLimitError, SummaryRejectedError, SummaryTimeoutError
from turnfold.ports import Summarizer

MIN_SUMMARY_TOKENS = 16
"""A summary that may take less than this is not worth asking for."""


class Drafted(msgspec.Struct, frozen=True, kw_only=True):
    """A bounded and completed summary, with the draft it came from."""

    text: str
    draft: SummaryDraft
    retention: Retention


def summary_request(
    plan: Plan, situation: Situation, policy: Policy, *, frame: str, max_tokens: int, max_chars: int, focus: str | None
) -> SummaryRequest:
    """Return what the summarizer is asked for this plan."""
    covered = situation.planning_rows()[: plan.cutoff_index]
    checkpoint = situation.checkpoint
    return SummaryRequest(
        messages=covered,
        mode=plan.mode,
        frame=frame,
        max_tokens=max_tokens,
        max_chars=max_chars,
        previous_summary=checkpoint.summary if checkpoint else None,
        groups=closed_groups(covered),
        current_input=_current_input(situation),
        focus=focus,
        input_protocol=policy.input_protocol,
        output_format=policy.output_format,
        length_policy=policy.length_policy,
        segment_content_tokens=policy.segment_content_tokens,
    )


def _current_input(situation: Situation) -> str:
    """The user's new line: what the summary is about to serve, and what has not happened yet."""
    incoming = "\n".join(message.text for message in situation.incoming if message.role == "user")
    if incoming:
        return incoming
    request = situation.open_request()
    return request.text if request else ""


async def ask(
    summarizer: Summarizer, request: SummaryRequest, calls: CallBudget, *, milliseconds: float, min_room: int = 0
) -> SummaryDraft:
    """Return the summarizer's draft within a time limit, or refuse before paying when it has less room than `min_room`.

    Raises SummaryError or ProviderError, never anything else; a cancellation of the caller passes.
    """
    if milliseconds <= 0:
        raise SummaryLimitError("the time for this compaction is used up", code="time_limit")
    try:
        _check_room(summarizer, request, min_room)
        async with asyncio.timeout(milliseconds / 1000):
            return _checked(summarizer, await summarizer.summarize(request, calls))
    except (SummaryError, ProviderError):
        raise
    except TimeoutError as error:
        raise SummaryTimeoutError(f"{summarizer.name} did not answer within {milliseconds:.0f} ms") from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise _raised(summarizer, error) from error  # something that it waited for was cancelled; this turn was not
    except Exception as error:  # a third party's summarizer may raise anything; the turn must still be served
        raise _raised(summarizer, error) from error


def _raised(summarizer: Summarizer, error: BaseException) -> SummaryError:
    detail = f"{summarizer.name} raised {type(error).__name__}: {error}"
    return SummaryError(detail[:500], code="summarizer_raised")


def _checked(summarizer: Summarizer, draft: object) -> SummaryDraft:
    """Return the draft when it is one: types are promises that a third party's summarizer may break."""
    if isinstance(draft, SummaryDraft) and isinstance(draft.text, str):
        return draft
    found = type(draft.text if isinstance(draft, SummaryDraft) else draft).__name__
    raise SummaryRejectedError(f"{summarizer.name} answered with {found} instead of a draft's text", code="no_draft")


def _check_room(summarizer: Summarizer, request: SummaryRequest, min_room: int) -> None:
    room = summarizer.generation_room(request) if min_room else None
    if room is not None and room < min_room:
        detail = f"{room} tokens are left to {summarizer.name} for its answer, {min_room} are asked for"
        raise SummaryError(detail, code="no_generation_room")


def finish(
    draft: SummaryDraft, request: SummaryRequest, *, max_tokens: int, count_text: Callable[[str], int]
) -> Drafted:
    """Bound the draft to its limits and complete it with instructions and identifiers.

    Raises SummaryRejectedError for a blank summary, or one over its limits under the `reject` policy.
    """
    if not draft.text.strip():
        raise SummaryRejectedError("the answer is blank", code="blank")
    text, cut = bound_summary(
        draft.text.strip(), max_chars=request.max_chars, max_tokens=max_tokens, count_text=count_text
    )
    if cut and request.length_policy == "reject":
        raise SummaryRejectedError(f"the answer is over its limit of {max_tokens} tokens", code="too_long")
    text, retention = complete_summary(
        text,
        request.messages,
        previous_summary=request.previous_summary,
        max_tokens=max_tokens,
        max_chars=request.max_chars,
        count_text=count_text,
    )
    return Drafted(text=text, draft=draft, retention=retention)


def char_limit(context_window: int, policy: Policy) -> int:
    """Return how many characters a summary may have (SPEC §6)."""
    return summary_char_limit(context_window, policy.clip_chars)


def failure_reason(error: SummaryError | ProviderError) -> Reason:
    """Return why a summarizer gave no usable summary."""
    if isinstance(error, SummaryError):
        return Reason(code=error.code, detail=error.detail)
    return Reason(code="provider", detail=str(error))
