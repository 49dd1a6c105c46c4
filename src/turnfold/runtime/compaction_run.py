"""One decision in the making: count, mask, plan, summarize, re-assemble, re-count, adopt or keep the old view and say why.

The only slow step is the summarizer, bounded in calls, candidates and time. Nothing is stored here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from turnfold.core.adoption import Proposal, codes, refusals, request_target
from turnfold.core.breakers import Verdict
from turnfold.core.budget import Budget, check_floor, overflow
from turnfold.core.checkpoint import Audit, Checkpoint, NextCheckpoint
from turnfold.core.limits import CallBudget
from turnfold.core.masking import masks_to_save
from turnfold.core.plan import Plan, Trigger
from turnfold.core.planners import clamp_percentage
from turnfold.core.planning import candidate_plans, planning_input
from turnfold.core.reasons import Reason
from turnfold.core.recording import masked_checkpoint, summary_checkpoint
from turnfold.core.situation import Situation
from turnfold.core.summary_row import envelope, summary_message
from turnfold.core.trimming import trim_oldest
from turnfold.core.view import ViewParts, render_view
from turnfold.errors import ContextOverflowError, PlanningError, ProviderError, SummaryError, SummaryLimitError
from turnfold.messages.model import Message, Usage, add_usage
from turnfold.ports import Summarizer
from turnfold.runtime.decision import Decision, Outcome
from turnfold.runtime.drafting import (
    MIN_SUMMARY_TOKENS,
    Drafted,
    ask,
    char_limit,
    failure_reason,
    finish,
    summary_request,
)
from turnfold.runtime.meter import Meter

if TYPE_CHECKING:
    from turnfold.runtime.compactor import Compactor

STATS_PASSES = 4
"""Tries at statistics that count their own text; the digits settle after two."""


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    """A view that was assembled, repaired and counted."""

    parts: ViewParts
    messages: tuple[Message, ...]
    repairs: tuple[Reason, ...]
    tokens: int

    def shown(self) -> int:
        """Messages in view beside the fixed prompt."""
        return len(self.messages) - len(self.parts.fixed)


class CompactionRun:
    """One decision in the making: what was counted, paid and refused so far."""

    def __init__(
        self,
        compactor: Compactor,
        situation: Situation,
        budget: Budget,
        meter: Meter,
        trigger: Trigger | None,
        *,
        checked: bool = True,
    ) -> None:
        self.compactor, self.policy = compactor, compactor.policy
        self.situation, self.budget, self.meter = situation, budget, meter
        self.floor_parts = self._floor_parts()
        checked = checked and self.policy.floor_aware  # the agent seed plans first, and finds out at the end
        self.floor = check_floor(budget, self.floor_parts) if checked else sum(size for _, size in self.floor_parts)
        self.old = self._render(situation.parts_before())
        pressed = self.old.tokens > budget.trigger_line
        self.trigger: Trigger | None = trigger or ("context_pressure" if pressed else None)
        self.calls = CallBudget(self.policy.max_model_calls)
        self.candidates = 0
        self.reasons: list[Reason] = list(self.old.repairs)
        self.usage: Usage | None = None
        self.verdict: Verdict = "none"
        self.started = compactor.clock.monotonic_ms()

    def _floor_parts(self) -> tuple[tuple[str, int], ...]:
        meter = self.meter
        own = (("the tools", meter.tools(self.situation.tools)), ("the frame", meter.counter.request_overhead))
        return (*((name, meter.messages(rows)) for name, rows in self.situation.untouchable()), *own)

    def _render(self, parts: ViewParts) -> Rendered:
        view = render_view(parts, self.compactor.assembler)
        tokens = self.meter.request(view.messages, self.situation.tools)
        return Rendered(parts=parts, messages=view.messages, repairs=view.repairs, tokens=tokens)

    def plans(self) -> tuple[Plan, ...]:
        """Return the plans to try, in order. Raises PlanningError when there is none."""
        known = planning_input(
            self.situation,
            self.old.parts.history,
            floor=self.floor,
            budget=self.budget,
            envelope=self.meter.message(envelope(self.policy, self._audit(self.old, "sliding_window"))),
            count=self.meter.message,
        )
        return candidate_plans(self.policy, known)

    # -- decisions -----------------------------------------------------------------------------------------------

    async def decide(self, upcoming: NextCheckpoint, *, allow_model: bool, focus: str | None) -> Decision:
        """Return the compacted view, else the old one when it fits, else a trimmed one. Raises ContextOverflowError."""
        self.started = self.compactor.clock.monotonic_ms()
        decision = self._by_masks(upcoming) or await self._by_summary(upcoming, allow_model=allow_model, focus=focus)
        if decision is not None:
            return decision
        return self.unchanged() if self.old.tokens <= self.budget.input_budget else self._trimmed()

    def unchanged(self) -> Decision:
        """Return the old view."""
        return self._decision(self.old, "reused" if self.situation.checkpoint else "unchanged")

    def _decision(
        self, view: Rendered, outcome: Outcome, checkpoint: Checkpoint | None = None, plan: Plan | None = None
    ) -> Decision:
        return Decision(
            messages=view.messages,
            tokens=view.tokens,
            tokens_before=self.old.tokens,
            messages_before=self.old.shown(),
            messages_after=view.shown(),
            message_tokens_before=self._message_tokens(self.old),
            message_tokens_after=self._message_tokens(view),
            outcome=outcome,
            trigger=self.trigger,
            plan=plan,
            checkpoint=checkpoint,
            summary=view.parts.summary if checkpoint else None,
            restored=view.parts.restored,
            reasons=tuple(self.reasons),
            calls=self.calls.used,
            candidates=self.candidates,
            milliseconds=self._elapsed(),
            usage=self.usage,
            verdict=self.verdict,
        )

    def _message_tokens(self, view: Rendered) -> int:
        floor = self.meter.request(view.parts.fixed, self.situation.tools)
        return view.tokens - floor

    def _elapsed(self) -> int:
        return math.ceil(self.compactor.clock.monotonic_ms() - self.started)

    def _trimmed(self) -> Decision:
        """Leave the oldest whole groups out of this turn's view until it fits; nothing of it is stored.

        Something is left to be answered: a request of the fixed prompt alone is none.
        """
        smallest = self.old.tokens
        may_drop = self.policy.planner == "bounded_recent"
        for parts in trim_oldest(self.situation, may_drop_summary=may_drop, skip=self._hopeless()):
            view = self._render(parts)
            if not view.shown():
                break
            smallest = min(smallest, view.tokens)
            if view.tokens <= self.budget.input_budget:
                left_out = len(self.old.messages) - len(view.messages)
                self.reasons.append(Reason(code="trimmed", detail=f"{left_out} of the oldest messages are not sent"))
                return self._decision(view, "trimmed")
        raise self.overflow(smallest)

    def _hopeless(self) -> int:
        """Count the oldest groups without whose leaving out, all together, nothing can fit."""
        summary, rows = self.old.parts.summary, self.situation.planning_rows()
        left = self.old.tokens - self.budget.input_budget - (self.meter.message(summary) if summary else 0)
        for index, (start, end) in enumerate(groups := self.situation.closed_groups()):
            left -= self.meter.messages(rows[start:end])
            if left <= 0:
                return index
        return max(0, len(groups) - 1)

    def overflow(self, smallest: int) -> ContextOverflowError:
        """Return the error for a request whose smallest form takes `smallest` tokens."""
        history = ("the history", self.old.tokens - self.floor)
        return overflow(self.budget, smallest, self.floor, (*self.floor_parts, history))

    # -- masks ---------------------------------------------------------------------------------------------------

    def _by_masks(self, upcoming: NextCheckpoint) -> Decision | None:
        """Mask old tool results if that alone reaches the target; then no model is called (SPEC §5)."""
        if not self.policy.mask_tool_results or self.trigger not in ("context_pressure", "overflow"):
            return None
        room = self.budget.trigger_line - self.floor
        target = self.floor + math.floor((1 - clamp_percentage(self.policy.percentage)) * room)
        situation = self.situation
        masks = masks_to_save(
            situation,
            self.old.tokens - target,
            keep_last=self.policy.keep_tool_results,
            count=self.meter.message,
            count_masked=self.meter.counter.count_message,
        )
        if masks is None:
            return None

        def shown(audit: Audit) -> tuple[Rendered, Checkpoint]:
            checkpoint = masked_checkpoint(situation, upcoming, audit, masks)
            summary = summary_message(checkpoint, self.policy) if checkpoint.summary else None
            return self._render(situation.parts_masked(masks, summary)), checkpoint

        self.candidates += 1
        view, checkpoint = self._settled(shown, "mask")
        plan = Plan(mode="mask", cutoff_index=0, kept_tokens=view.tokens - self.floor, target=target - self.floor)
        return None if self._refused(view, plan) else self._adopted(view, checkpoint, plan)

    # -- summaries -----------------------------------------------------------------------------------------------

    async def _by_summary(self, upcoming: NextCheckpoint, *, allow_model: bool, focus: str | None) -> Decision | None:
        try:
            plans = self.plans()
        except PlanningError as error:
            self.reasons.append(Reason(code="no_plan", detail=error.reason))
            return None
        primary, fallback = self.compactor.summarizer, self.compactor.fallback
        may_ask = allow_model or primary.deterministic
        if may_ask:
            self.verdict, before = "failed", len(self.reasons)
            decision = await self._try_plans(plans, primary, upcoming, focus)
            if decision is not None:
                return msgspec.structs.replace(decision, verdict="succeeded")
            if "no_saving" in codes(self.reasons[before:]):
                self.verdict = "saved_nothing"
        else:
            self.reasons.append(Reason(code="breaker_open", detail="no model is called until it half-opens"))
        if fallback is primary or (may_ask and not self._needs_fallback()):
            return None
        self.reasons.append(Reason(code="fallback", detail=f"{fallback.name} is used instead of {primary.name}"))
        return await self._try_plans(plans, fallback, upcoming, focus)

    def _needs_fallback(self) -> bool:
        return self.policy.fallback_on_failure and self.old.tokens > self.budget.input_budget

    async def _try_plans(
        self, plans: tuple[Plan, ...], summarizer: Summarizer, upcoming: NextCheckpoint, focus: str | None
    ) -> Decision | None:
        """Try plans in order. A failing summarizer ends the sliding window's tries, and so does any refusal but size."""
        shrinking = self.policy.planner == "bounded_recent"
        for plan in plans:
            if self.candidates >= self.policy.max_candidate_attempts:
                self.reasons.append(Reason(code="candidate_limit", detail=f"{self.candidates} candidates were tried"))
                return None
            self.candidates += 1
            try:
                decision, refused = await self._try_plan(plan, summarizer, upcoming, focus)
            except SummaryLimitError as error:
                self.reasons.append(Reason(code=error.code, detail=error.detail))
                if shrinking and error.code == "call_limit" and self.calls.left:
                    continue  # a smaller candidate may need no more calls than are left
                return None
            except (SummaryError, ProviderError) as error:
                reason = failure_reason(error)
                self.reasons.append(reason)
                if not (shrinking or reason.code == "no_room"):  # the plan was at fault, not the summarizer
                    return None
                continue
            if decision is not None or not (shrinking or "over_budget" in codes(refused)):
                return decision
        return None

    async def _try_plan(
        self, plan: Plan, summarizer: Summarizer, upcoming: NextCheckpoint, focus: str | None
    ) -> tuple[Decision | None, tuple[Reason, ...]]:
        view, checkpoint = await self._draft(plan, summarizer, upcoming, focus)
        refused = self._refused(view, plan)
        return (None if refused else self._adopted(view, checkpoint, plan)), refused

    async def _draft(
        self, plan: Plan, summarizer: Summarizer, upcoming: NextCheckpoint, focus: str | None
    ) -> tuple[Rendered, Checkpoint]:
        """Have the summary written, then shrink it until the message that shows it keeps the plan's allowance."""
        count_message = self.meter.counter.count_message
        empty = self._shown_summary(plan, upcoming, summarizer, None)[0].parts.summary
        limit = self._room(plan.allowance - (count_message(empty) if empty else 0))
        request = summary_request(
            plan,
            self.situation,
            self.policy,
            frame=self.compactor.new_frame(),
            max_tokens=limit,
            max_chars=char_limit(self.budget.context_window, self.policy),
            focus=focus,
        )
        spent = (
            0 if summarizer.deterministic else self._elapsed()
        )  # what needs no model also serves a turn that waited in vain
        left = self.policy.max_compaction_ms - spent
        minimum = self.policy.min_generation_tokens
        draft = await ask(summarizer, request, self.calls, milliseconds=left, min_room=minimum)
        self.usage = add_usage(self.usage, draft.usage)
        while True:
            drafted = finish(draft, request, max_tokens=limit, count_text=self.meter.counter.count_text)
            view, checkpoint = self._shown_summary(plan, upcoming, summarizer, drafted)
            excess = (count_message(view.parts.summary) if view.parts.summary else 0) - plan.allowance
            if excess <= 0:
                return view, checkpoint
            limit = self._room(limit - excess)

    @staticmethod
    def _room(tokens: int) -> int:
        if tokens < MIN_SUMMARY_TOKENS:
            raise SummaryError(f"the plan leaves {tokens} tokens for the summary", code="no_room")
        return tokens

    def _shown_summary(
        self, plan: Plan, upcoming: NextCheckpoint, summarizer: Summarizer, drafted: Drafted | None
    ) -> tuple[Rendered, Checkpoint]:
        """Return the view with the summary, and its checkpoint."""
        text, draft = (drafted.text, drafted.draft) if drafted else ("", None)

        def shown(audit: Audit) -> tuple[Rendered, Checkpoint]:
            checkpoint = summary_checkpoint(self.situation, plan, upcoming, audit, text, draft)
            message = summary_message(checkpoint, self.policy)
            return self._render(self.situation.parts_after(plan, message)), checkpoint

        return self._settled(shown, plan.mode, summarizer, drafted)

    def _settled(
        self,
        shown: Callable[[Audit], tuple[Rendered, Checkpoint]],
        mode: str,
        summarizer: Summarizer | None = None,
        drafted: Drafted | None = None,
    ) -> tuple[Rendered, Checkpoint]:
        """Return a view and its checkpoint whose statistics are true of that view: both are made until they agree, since
        the summary's message carries the statistics.
        """
        view, checkpoint = shown(self._audit(self.old, mode, summarizer, drafted))
        for _ in range(STATS_PASSES):
            if (checkpoint.audit.tokens_after, checkpoint.audit.messages_after) == (view.tokens, view.shown()):
                break
            view, checkpoint = shown(self._audit(view, mode, summarizer, drafted))
        return view, checkpoint

    def _audit(
        self, view: Rendered, mode: str, summarizer: Summarizer | None = None, drafted: Drafted | None = None
    ) -> Audit:
        draft = drafted.draft if drafted else None
        return Audit(
            trigger=self.trigger or "manual",
            mode=mode,
            summarizer=summarizer.name if summarizer else "",
            model=draft.model if draft else "",
            prompt_hash=draft.prompt_hash if draft else "",
            counter=self.meter.counter.name,
            tokens_before=self.old.tokens,
            tokens_after=view.tokens,
            context_window=self.budget.context_window,
            messages_before=self.old.shown(),
            messages_after=view.shown(),
            calls=self.calls.used,
            candidates=self.candidates,
            milliseconds=self._elapsed(),
            usage=self.usage,
            retention=drafted.retention if drafted else None,
            not_shown=draft.not_shown if draft else (),
            reasons=tuple(str(reason) for reason in self.reasons),
        )

    # -- adoption ------------------------------------------------------------------------------------------------

    def _refused(self, view: Rendered, plan: Plan) -> tuple[Reason, ...]:
        parts = view.parts
        refused = refusals(
            Proposal(
                trigger=self.trigger or "manual",
                budget=self.budget,
                messages=view.messages,
                tokens_before=self.old.tokens,
                tokens_after=view.tokens,
                verbatim=self.situation.verbatim_after(parts, {message.id for message in self.old.messages}),
                summary=parts.summary.text if parts.summary else None,
                masks_only=plan.mode == "mask",
                target=request_target(plan, self.floor),
                excused=plan.excused,
            )
        )
        self.reasons.extend(refused)
        return refused

    def _adopted(self, view: Rendered, checkpoint: Checkpoint, plan: Plan) -> Decision:
        self.reasons.extend(view.repairs)
        return self._decision(view, "compacted", checkpoint, plan)
