"""The Compact runtime: request-scoped compaction for chat products, with durable checkpoints (SPEC §10).

A request brings its recent history; the runtime finds the newest checkpoint that is provably true of it, compacts within
strict bounds, and stores the result before the reply is generated. "Compacted now" and "remembered later" stay two facts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from turnfold.core.breakers import HALF_OPEN_TURNS
from turnfold.core.budget import Budget, budget_problems
from turnfold.core.checkpoint import CheckpointKey, NextCheckpoint
from turnfold.core.groups import closed_groups, is_final
from turnfold.core.plan import Trigger
from turnfold.core.reasons import Reason
from turnfold.core.situation import Situation
from turnfold.core.summary_row import summary_message
from turnfold.errors import ConfigError, ContextOverflowError
from turnfold.messages.canonical import digest_text
from turnfold.messages.model import Message
from turnfold.ports import CheckpointStore, StateStore
from turnfold.runtime.breaking import BreakerKeeper, BreakerState
from turnfold.runtime.compactor import Compactor
from turnfold.runtime.connecting import Connected, Connector
from turnfold.runtime.decision import Decision, Persistence, Prepared, prepared_from
from turnfold.runtime.meter import Meter
from turnfold.runtime.recollection import Recollection
from turnfold.runtime.requests import CompactRequest, groups_after, identified, persistence_obstacle
from turnfold.runtime.timed_writes import INVALIDATED, TimedWrites


class CompactStore(CheckpointStore, StateStore, Protocol):
    """What the Compact runtime keeps: checkpoints, and the breakers' state."""


class CompactOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The scenario's part of a runtime. `scenario` names its line of checkpoints, `preset_hash` the summarizer's prompts.

    `context_window`, `output_reserve` (where a request gives no maximum output) and `safety_margin` in tokens.
    `mutation_timeout_ms` None is the default limit, without a read-back. `mode` is `enforce` or `shadow`.
    """

    scenario: str
    context_window: int
    output_reserve: int
    safety_margin: int
    trigger_ratio: float
    enabled: bool = True
    preset_hash: str = ""
    advance_groups: int = 2
    mutation_timeout_ms: int | None = None
    mode: Literal["enforce", "shadow"] = "enforce"
    explicit_groups: bool = False


class CompactRuntime:
    """Prepares requests of one scenario. Safe for any number of conversations at once; it holds no conversation's state.

    It remembers, in bounded memory, the tokens and digests of what messages say.
    """

    def __init__(
        self, store: CompactStore, compactor: Compactor, options: CompactOptions, *, new_id: Callable[[], str]
    ) -> None:
        self.store, self.compactor, self.options = store, compactor, options
        self.new_id, self.writes = new_id, TimedWrites(store, limit_ms=options.mutation_timeout_ms)
        self.recollection = Recollection(compactor.counter.count_message)

    async def prepare(self, request: CompactRequest) -> Prepared:
        """Return the request to send, within its budget.

        Raises InputError or GroupsError for a request that cannot be read, ConfigError for a maximum output that leaves
        nothing of the window, FloorError or ContextOverflowError when nothing can be made to fit. Failing models and
        stores are reported, never raised.
        """
        return await _Preparation(self, request).prepared()

    def budget(self, request: CompactRequest) -> Budget:
        """Return the request's budget: the output reserve is this turn's maximum output. Raises ConfigError."""
        budget = self._budget(self.options.output_reserve if request.max_output is None else request.max_output)
        if problems := budget_problems(budget):
            raise ConfigError(problems)
        return budget

    def _budget(self, output_reserve: int) -> Budget:
        options = self.options
        return Budget(
            context_window=options.context_window,
            output_reserve=output_reserve,
            safety_margin=options.safety_margin,
            trigger_ratio=options.trigger_ratio,
        )

    def configuration(self) -> str:
        """Return a hash of what the breakers watch: the scenario's own, whatever single requests ask for."""
        return self.compactor.configuration(self._budget(self.options.output_reserve))

    def fingerprint(self, request: CompactRequest) -> str | None:
        """Return what must be equal for an old summary to be used: role, persona, prompts, protocol, format (SPEC §9).

        None when the request does not know its character.
        """
        if request.persona is None:
            return None
        policy = self.compactor.policy
        return digest_text(
            request.role_id, request.persona, self.options.preset_hash, policy.input_protocol, policy.output_format
        )


class _Preparation:
    """One request on its way."""

    def __init__(self, runtime: CompactRuntime, request: CompactRequest) -> None:
        self.runtime, self.options = runtime, runtime.options
        self.compactor, self.policy = runtime.compactor, runtime.compactor.policy
        self.request, self.passing = identified(request)
        self.history = self.request.history
        self.budget = runtime.budget(request)
        self.meter = Meter(self.compactor.counter, count=runtime.recollection.tokens)
        self.key = CheckpointKey(
            tenant=request.tenant,
            user=request.user,
            conversation_id=request.conversation_id,
            scenario=self.options.scenario,
        )
        self.reasons: list[Reason] = []
        self.connected = Connected()

    async def prepared(self) -> Prepared:
        if not self.options.enabled:
            return self._uncompacted()
        self.connected = await self._connector().connect(self.key, self.history)
        self.reasons.extend(self.connected.reasons)
        if self.options.mode == "enforce":
            await self._invalidate_changed()
        situation = self._situation()
        if self.options.mode == "shadow":
            return await self._shadow(situation)
        decision = await self._decide(situation)
        persistence, problems = await self._persist(decision, situation)
        await self._breakers().note(decision, message_id=self._last_id())
        return self._result(decision, persistence, problems)

    async def _decide(self, situation: Situation) -> Decision:
        return await self.compactor.decide(
            situation,
            self.budget,
            meter=self.meter,
            upcoming=self._upcoming(),
            trigger="manual" if self.request.force_compaction else self._advance(situation),
            may_call=self._breakers().allows,
        )

    # -- reading -------------------------------------------------------------------------------------------------

    def _connector(self) -> Connector:
        return Connector(
            self.runtime.store,
            fingerprint=self.runtime.fingerprint(self.request),
            count_text=self.compactor.counter.count_text,
            max_summary_tokens=self.policy.allowance(self.options.context_window),
            digest_of=self.runtime.recollection.digest,
        )

    @property
    def may_write(self) -> bool:
        return self.request.mutation_allowed and self.connected.verifiable

    async def _invalidate_changed(self) -> None:
        """Mark what a known change made unusable, by version, before anything is rebuilt.

        The first failure ends it: each mark has a time limit of its own, and a turn should not wait for many.
        """
        for version, why in self.connected.changed if self.may_write else ():
            done = await self.runtime.writes.invalidate(self.key, version, why)
            self.reasons.append(done)
            if done.code != INVALIDATED:
                return

    def _situation(self) -> Situation:
        checkpoint, start = self.connected.checkpoint, self.connected.uncovered_from
        return Situation(
            fixed=self.request.fixed_prompt,
            tools=self.request.tools,
            checkpoint=checkpoint,
            summary=summary_message(checkpoint, self.policy) if checkpoint and checkpoint.summary else None,
            request=self._covered_request(),
            history=self.history[start:],
            injected=self.request.injected,
            incoming=self.request.incoming,
            groups=groups_after(self.history, self._explicit_groups(), start),
        )

    def _covered_request(self) -> Message | None:
        """The covered request of a turn that was open, which stays in view as long as the request carries it."""
        checkpoint = self.connected.checkpoint
        wanted = checkpoint.open_request_id if checkpoint else None
        covered = self.history[: self.connected.uncovered_from] if wanted else ()
        return next((message for message in covered if message.id == wanted), None)

    def _explicit_groups(self) -> tuple[tuple[str, ...], ...] | None:
        return (self.request.groups or ()) if self.options.explicit_groups else None

    def _advance(self, situation: Situation) -> Trigger | None:
        """Return `advance` when the coverage's end is about to leave the carried history (SPEC §10, step 4)."""
        coverage = situation.checkpoint.coverage if situation.checkpoint else None
        if coverage is None or not self.may_write or self.history[0].id == coverage.first_id:
            return None
        groups = groups_after(self.history, self._explicit_groups(), 0) or closed_groups(self.history)
        first = groups[: self.options.advance_groups]
        if not first or self.connected.uncovered_from > first[-1][1]:
            return None
        return "advance" if self._could_be_saved(situation) else None

    def _could_be_saved(self, situation: Situation) -> bool:
        """Whether all that a compaction might cover has persistent ids; else each turn would pay for one in vain."""
        eligible = situation.closed_groups()[: -self.policy.keep_last_groups or None]
        end = eligible[-1][1] if eligible else 0
        return persistence_obstacle(situation.planning_rows()[:end], self.passing) is None

    # -- breakers ------------------------------------------------------------------------------------------------

    def _breakers(self) -> BreakerKeeper:
        return BreakerKeeper(
            self.runtime.store,
            self.key.conversation,
            self.options.scenario,
            configuration=self.runtime.configuration(),
            turns_since=self._turns_since,
        )

    def _last_id(self) -> str:
        """The persistent id of the history's last message, empty when it has none."""
        last = self.history[-1].id if self.history else ""
        return "" if last in self.passing else last

    async def _turns_since(self, state: BreakerState) -> int:
        """Closed turns in the carried history after the message at which the state was written.

        When that has left the history (or had no id) nobody can count them; a breaker must not stay open for good where
        requests carry fewer turns than it waits for, so it half-opens.
        """
        turns = 0
        for message in reversed(self.history):
            if message.id == state.message_id:
                return turns
            turns += is_final(message)
        return HALF_OPEN_TURNS

    # -- writing -------------------------------------------------------------------------------------------------

    def _upcoming(self) -> NextCheckpoint:
        version = self.connected.head_version + 1
        return NextCheckpoint(
            version=version,
            summary_id=f"summary-{self.options.scenario}-{version}-{self.runtime.new_id()}",
            fingerprint=self.runtime.fingerprint(self.request) or "",
            created_at=self.compactor.clock.now_ms(),
        )

    async def _persist(self, decision: Decision, situation: Situation) -> tuple[Persistence, tuple[Reason, ...]]:
        checkpoint = decision.checkpoint
        if checkpoint is None or decision.plan is None:
            return "not_needed", ()
        if not self.request.mutation_allowed:
            detail = f"requests of type {self.request.request_type!r} do not change checkpoints"
            return "not_allowed", (Reason(code="not_allowed", detail=detail),)
        if not self.connected.verifiable:
            detail = "an existing checkpoint could not be verified, so no new one is written"
            return "not_allowed", (Reason(code="unverifiable", detail=detail),)
        obstacle = persistence_obstacle(situation.planning_rows()[: decision.plan.cutoff_index], self.passing)
        if obstacle is not None:
            return "not_allowed", (obstacle,)
        return await self.runtime.writes.save(self.key, checkpoint, expected_version=self.connected.head_version)

    # -- results -------------------------------------------------------------------------------------------------

    def _original(self) -> Situation:
        return Situation(
            fixed=self.request.fixed_prompt,
            tools=self.request.tools,
            history=self.history,
            injected=self.request.injected,
            incoming=self.request.incoming,
        )

    def _uncompacted(self) -> Prepared:
        """Return the request as it came. Raises ContextOverflowError when it does not fit."""
        return self._result(self._counted(), "not_needed", ())

    def _counted(self) -> Decision:
        decision = self.compactor.count(self._original(), self.budget, meter=self.meter)
        if decision.tokens > self.budget.input_budget:
            raise self.compactor.overflow(self._original(), self.budget, meter=self.meter)
        return decision

    async def _shadow(self, situation: Situation) -> Prepared:
        """Return the original request, with what enforcing would have made of it; nothing is stored.

        Raises ContextOverflowError when the original does not fit, as it would without Compact.
        """
        original = self._counted()
        try:
            decision = await self._decide(situation)
        except ContextOverflowError as error:
            reason = Reason(code="shadow", detail=f"enforcing would raise: {error}")
            return self._result(msgspec.structs.replace(original, outcome="shadow"), "not_needed", (reason,))
        detail = f"enforcing would send {decision.tokens} tokens ({decision.outcome})"
        shown = msgspec.structs.replace(
            decision, messages=original.messages, tokens=original.tokens, checkpoint=None, outcome="shadow"
        )
        return self._result(shown, "not_needed", (Reason(code="shadow", detail=detail),))

    def _result(self, decision: Decision, persistence: Persistence, problems: tuple[Reason, ...]) -> Prepared:
        shown = decision.checkpoint or self.connected.checkpoint
        kept = decision.checkpoint if persistence == "saved" else self.connected.checkpoint
        return prepared_from(
            decision,
            tools=self.request.tools,
            budget=self.budget,
            counter=self.compactor.counter,
            persistence=persistence,
            version=kept.version if kept else None,
            summary=shown.summary if shown else None,
            reasons=(*self.reasons, *decision.reasons, *problems),
        )
