"""Decides one turn: the view to send, and the checkpoint that would be stored for it.

A compactor is the equipment of decisions; each one is made in a `CompactionRun`. Nothing is stored here: the result is a
Decision, which a session or the Compact runtime persists (SPEC §10).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from turnfold.core.budget import Budget
from turnfold.core.checkpoint import NextCheckpoint
from turnfold.core.growing import GrowingView
from turnfold.core.plan import Plan, Trigger
from turnfold.core.policy import Policy
from turnfold.core.situation import Situation
from turnfold.core.view import Assembler, assemble
from turnfold.errors import ContextOverflowError
from turnfold.messages.canonical import digest_text
from turnfold.messages.model import Message, Tool
from turnfold.ports import Clock, Summarizer, TokenCounter
from turnfold.runtime.compaction_run import CompactionRun
from turnfold.runtime.decision import Decision
from turnfold.runtime.meter import Meter


class Compactor:
    """One policy, one counter, one summarizer and a deterministic fallback, for any number of conversations.

    `new_frame` gives the unguessable word that marks a transcript's ends; `assembler` orders the view.
    """

    def __init__(
        self,
        *,
        counter: TokenCounter,
        summarizer: Summarizer,
        fallback: Summarizer,
        policy: Policy,
        clock: Clock,
        new_frame: Callable[[], str],
        assembler: Assembler = assemble,
    ) -> None:
        self.counter, self.policy, self.clock = counter, policy, clock
        self.summarizer, self.fallback, self.assembler = summarizer, fallback, assembler
        self.new_frame = new_frame

    async def decide(
        self,
        situation: Situation,
        budget: Budget,
        *,
        meter: Meter,
        upcoming: NextCheckpoint,
        trigger: Trigger | None = None,
        may_call: Callable[[Trigger], Awaitable[bool]],
        focus: str | None = None,
        on_start: Callable[[Trigger, int, int], None] | None = None,
    ) -> Decision:
        """Return what to send. `trigger` forces a compaction; without one only pressure starts it.

        `may_call` says, once a compaction is due, whether a model may be called for it (the breakers). `on_start` is told
        the trigger, messages and tokens before a compaction is tried. Raises FloorError or ContextOverflowError when
        nothing can be made to fit.
        """
        run = CompactionRun(self, situation, budget, meter, trigger)
        if run.trigger is None:
            return run.unchanged()
        if on_start is not None:
            on_start(run.trigger, run.old.shown(), run.old.tokens)
        return await run.decide(upcoming, allow_model=await may_call(run.trigger), focus=focus)

    def configuration(self, budget: Budget) -> str:
        """Return a hash of all that decides how compaction goes; a change of it half-opens the breakers."""
        return digest_text(self.summarizer.name, repr(self.policy), repr(budget), self.counter.name)

    def plan(self, situation: Situation, budget: Budget, *, meter: Meter) -> tuple[Plan, ...]:
        """Return the plans that a compaction would try, in order, without calling anyone.

        Raises PlanningError when there is none, FloorError when the floor alone is too large.
        """
        return CompactionRun(self, situation, budget, meter, None).plans()

    def grown(
        self, view: GrowingView, fixed: tuple[Message, ...], tools: tuple[Tool, ...], *, meter: Meter, reused: bool
    ) -> Decision:
        """Return the decision for a view that only grew: it is sent as it is."""
        shown, tokens = len(view.messages) - len(fixed), view.tokens - meter.request(fixed, tools)
        return Decision(
            messages=view.messages,
            tokens=view.tokens,
            tokens_before=view.tokens,
            messages_before=shown,
            messages_after=shown,
            message_tokens_before=tokens,
            message_tokens_after=tokens,
            outcome="reused" if reused else "unchanged",
        )

    def count(self, situation: Situation, budget: Budget, *, meter: Meter) -> Decision:
        """Return the view as it is, counted, whether it fits or not."""
        return CompactionRun(self, situation, budget, meter, None, checked=False).unchanged()

    def overflow(self, situation: Situation, budget: Budget, *, meter: Meter) -> ContextOverflowError:
        """Return the error for a view that does not fit as it is, with its largest parts."""
        run = CompactionRun(self, situation, budget, meter, None)
        return run.overflow(run.old.tokens)
