"""The session: a conversation whose requests are prepared so that they fit.

What the model sees is computed from the log and the newest checkpoint that is true of the branch (SPEC §12).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from turnfold.core.anchoring import PREPARED_TOKENS
from turnfold.core.budget import Budget, corrected, with_input_budget
from turnfold.core.checkpoint import Audit, NextCheckpoint
from turnfold.core.groups import is_final
from turnfold.core.growing import GrowingView, grown, waiting_calls
from turnfold.core.plan import Plan, Trigger
from turnfold.core.policy import Policy
from turnfold.core.reasons import Reason
from turnfold.core.situation import Situation
from turnfold.core.summary_row import summary_message
from turnfold.core.system_prompt import CompiledPrompt, compile_prompt
from turnfold.core.view import closed_under_tools
from turnfold.errors import StillTooLargeError, StoreError, VersionConflict
from turnfold.messages.canonical import digest_text
from turnfold.messages.log import ConversationKey, LogEntry
from turnfold.messages.model import Message, Tool
from turnfold.ports import Store
from turnfold.runtime.breaking import BreakerKeeper, BreakerState
from turnfold.runtime.compactor import Compactor
from turnfold.runtime.decision import Decision, Persistence, Prepared, prepared_from
from turnfold.runtime.documents import Document
from turnfold.runtime.event_stream import Events
from turnfold.runtime.events import CompactionStarted, Listener, events_of
from turnfold.runtime.meter import Meter
from turnfold.session.conversation import SCENARIO, Conversation
from turnfold.session.prompting import FIXED_ID, PromptKeeper, PromptSource, fixed_messages
from turnfold.session.reminding import ReminderProvider, reminder_messages
from turnfold.session.track import Track

MAX_OVERFLOWS = 3
"""Overflow retries in one turn; the last one needs no model (SPEC §12)."""

OVERFLOW_SHRINK = 0.85
"""After an overflow the next request may take this share of the one that the provider refused."""


class DeliveredEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The newest checkpoint version whose compaction was told."""

    version: int = 0


class CompactionEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A compaction to be told of, once: its checkpoint's version, when it was made (UTC, ms), and how."""

    version: int
    at: int
    audit: Audit


class _LastView(NamedTuple):
    """The last view sent without a compaction, and all that it was made from: `rows` is the track's own list, which
    stands for the checkpoint too, since each load makes another.
    """

    view: GrowingView
    rows: list[Message]
    fixed: tuple[Message, ...]
    tools: tuple[Tool, ...]
    row_count: int


class Session(Conversation):
    """One conversation. Use it as `async with Session(...) as session`.

    `budget` is what requests may take, `system` the fixed prompt (a text, or a source with memory files), `model` the chat
    model's name as replies report it (for anchoring counts), `reminders` are put back after every compaction, `new_id`
    makes message and branch ids. `branch` None goes on where the conversation was left. `events` tells `listener`, and whoever
    follows `events.stream()`.
    """

    def __init__(
        self,
        store: Store,
        key: ConversationKey,
        compactor: Compactor,
        *,
        budget: Budget,
        new_id: Callable[[], str],
        system: str | PromptSource = "",
        tools: tuple[Tool, ...] = (),
        model: str | None = None,
        branch: str | None = None,
        listener: Listener | None = None,
        reminders: Mapping[str, ReminderProvider] | None = None,
    ) -> None:
        super().__init__(
            store,
            key,
            meter=Meter(compactor.counter),
            fingerprint=session_fingerprint(compactor.policy),
            prompt=PromptKeeper(store, key, system, clock=compactor.clock, new_id=new_id),
            clock=compactor.clock,
            new_id=new_id,
            model=model,
            branch=branch,
        )
        self.compactor, self.budget, self.tools = compactor, budget, tools
        self.events, self._reminders = Events(listener), dict(reminders or {})
        self._event = Document(store, key, "compaction_event", DeliveredEvent())
        self._lock = asyncio.Lock()
        self._breakers = BreakerKeeper(
            store, key, SCENARIO, configuration=compactor.configuration(budget), turns_since=self._turns_since
        )
        self._prepared_tokens: int | None = None
        self._overflows = 0
        self._last: _LastView | None = None

    async def _open(self, branch: str) -> None:
        await super()._open(branch)
        self._prepared_tokens, self._overflows, self._last = None, 0, None

    async def _append(self, messages: Sequence[Message]) -> tuple[LogEntry, ...]:
        if any(map(_begins_or_ends_turn, messages)):
            self._overflows = 0
        return await super()._append(messages)

    # -- messages ------------------------------------------------------------------------------------------------

    async def reply(self, message: Message) -> Prepared | None:
        """Append a model's reply to the request last prepared; compact when its usage says that pressure is on.

        Returns what that compaction prepared, or None when there was no need.
        """
        if self._prepared_tokens is not None:
            metadata = {**message.metadata, PREPARED_TOKENS: self._prepared_tokens}
            message = msgspec.structs.replace(message, metadata=metadata)
        await self.append(message)
        usage = message.usage
        pressed = usage is not None and usage.prompt + usage.output > self.budget.trigger_line
        return await self.prepare(trigger="context_pressure") if pressed and is_final(message) else None

    # -- requests ------------------------------------------------------------------------------------------------

    async def prepare(
        self, *, trigger: Trigger | None = None, focus: str | None = None, allow_model: bool = True
    ) -> Prepared:
        """Return a request that fits, compacted when it has to be.

        `trigger` forces a compaction. Raises FloorError or ContextOverflowError when nothing can be made to fit; a failing
        summarizer or checkpoint store never fails the turn.
        """
        async with self._lock:
            await self._track.catch_up()
            await self._tell_memory()
            budget = self._effective_budget()
            decision = await self._grown(budget) if trigger is None else None
            if decision is not None:
                return self._done(decision, budget, "not_needed", (), self._track)
            return await self._prepare(budget, trigger, focus, allow_model=allow_model)

    async def compact(self, instructions: str | None = None) -> Prepared:
        """Compact now, whatever the pressure; `instructions` say what the summary should dwell on."""
        return await self.prepare(trigger="manual", focus=instructions)

    async def overflowed(self) -> Prepared:
        """Return a smaller request after the provider refused the last one as too large.

        At most three times a turn, the last one without a model; then StillTooLargeError, a ContextOverflowError.
        """
        async with self._lock:
            await self._track.catch_up()
            budget = self._effective_budget()
            refused = min(self._prepared_tokens or budget.input_budget, budget.input_budget)
            self._overflows += 1
            if self._overflows > MAX_OVERFLOWS:
                raise StillTooLargeError(self.budget.input_budget, refused, 0, (("the request", refused),))
            shrunk = with_input_budget(budget, int(refused * OVERFLOW_SHRINK))
            return await self._prepare(shrunk, "overflow", None, allow_model=self._overflows < MAX_OVERFLOWS)

    async def take_compaction_event(self) -> CompactionEvent | None:
        """Return the newest compaction that nobody was told of yet, once: also after a restart, also among processes."""
        await self._track.catch_up()
        checkpoint = self._track.checkpoint
        if checkpoint is None:
            return None
        first = False

        def deliver(delivered: DeliveredEvent) -> DeliveredEvent:
            nonlocal first
            first = delivered.version < checkpoint.version
            return DeliveredEvent(version=max(delivered.version, checkpoint.version))

        await self._event.change(deliver)
        return (
            CompactionEvent(version=checkpoint.version, at=checkpoint.created_at, audit=checkpoint.audit)
            if first
            else None
        )

    async def view(self) -> Decision:
        """Return what the next call would see without a new compaction, counted, whether it fits or not."""
        await self._track.catch_up()
        return self.compactor.count(await self._situation(), self.budget, meter=self._meter)

    async def plan(self) -> tuple[Plan, ...]:
        """Return the plans that a compaction would try now, in order; nothing is called or stored.

        Raises PlanningError when there is none.
        """
        await self._track.catch_up()
        return self.compactor.plan(await self._situation(), self._effective_budget(), meter=self._meter)

    async def context_ids(self) -> tuple[str, ...]:
        """Return the ids of the messages in context, in order: the summary's, then the kept ones."""
        return tuple(message.id for message in (await self.view()).messages if message.id != FIXED_ID)

    async def prompts(self) -> tuple[CompiledPrompt, CompiledPrompt]:
        """Return the system prompt in force, and the one that a compaction now would make of base text and memory."""
        await self._track.catch_up()
        return await self._prompt.in_force(self._track.checkpoint), compile_prompt(await self._prompt.current())

    def _effective_budget(self) -> Budget:
        return corrected(self.budget, self._track.factor)

    async def _situation(self) -> Situation:
        track, checkpoint = self._track, self._track.checkpoint
        history, incoming = _split_incoming(track.history())
        wanted = self._pinned | track.prompt_ids()
        pinned = closed_under_tools(history, wanted)
        covered_pins = await track.covered_whole(wanted) if wanted and track.covered_position else ()
        shown = frozenset(checkpoint.pins) if checkpoint else frozenset()
        prompt_after = compile_prompt(await self._prompt.current())
        return Situation(
            fixed=await self._prompt.fixed(checkpoint),
            fixed_after=fixed_messages(prompt_after),
            prompt_after=prompt_after,
            tools=self.tools,
            checkpoint=checkpoint,
            summary=summary_message(checkpoint, self.compactor.policy) if checkpoint and checkpoint.summary else None,
            shown_pins=await track.covered(shown) if shown else (),
            covered_pins=covered_pins,
            pinned=pinned,
            request=track.request,
            history=history,
            folded=track.folded(),
            incoming=incoming,
            restored_after=await self._restored(),
        )

    async def _restored(self) -> tuple[Message, ...]:
        return await reminder_messages(
            self._reminders,
            version=self._track.head_version + 1,
            created_at=self.compactor.clock.now_ms(),
            new_id=self.new_id,
        )

    async def _prepare(
        self, budget: Budget, trigger: Trigger | None, focus: str | None, *, allow_model: bool
    ) -> Prepared:
        track, row_count = (
            self._track,
            len(self._track.rows),
        )  # whoever switches the branch meanwhile makes another track
        situation = await self._situation()
        decision = await self.compactor.decide(
            situation,
            budget,
            meter=self._meter,
            upcoming=self._upcoming(),
            trigger=trigger,
            may_call=self._breakers.allows if allow_model else _never,
            focus=focus,
            on_start=self._starting,
        )
        persistence, problems = await self._persist(decision, track)
        await self._breakers.note(decision, position=track.position)
        self._remember(decision, situation.fixed, track, row_count)
        return self._done(decision, budget, persistence, problems, track)

    # -- growing views -------------------------------------------------------------------------------------------

    def _remember(self, decision: Decision, fixed: tuple[Message, ...], track: Track, row_count: int) -> None:
        """Keep an untouched view, so that the next request need only look at what is new."""
        plain = decision.trigger is None and not decision.reasons
        view = GrowingView(messages=decision.messages, tokens=decision.tokens, waiting=waiting_calls(decision.messages))
        self._last = _LastView(view, track.rows, fixed, self.tools, row_count) if plain else None

    async def _grown(self, budget: Budget) -> Decision | None:
        """Return the last view with the new rows at its end, or None when it must be made the long way."""
        last, track = self._last, self._track
        if last is None or last.rows is not track.rows or last.tools != self.tools:
            return None
        if await self._prompt.fixed(track.checkpoint) is not last.fixed:
            return None
        view = grown(last.view, track.rows[last.row_count :], self._meter.message)
        if view is None or view.tokens > budget.trigger_line:
            return None
        self._last = _LastView(view, track.rows, last.fixed, last.tools, len(track.rows))
        return self.compactor.grown(
            view, last.fixed, self.tools, meter=self._meter, reused=track.checkpoint is not None
        )

    def _upcoming(self) -> NextCheckpoint:
        version = self._track.head_version + 1
        summary_id = f"summary-{SCENARIO}-{version}-{self.new_id()}"
        return NextCheckpoint(
            version=version,
            summary_id=summary_id,
            fingerprint=self._track.fingerprint,
            created_at=self.compactor.clock.now_ms(),
        )

    async def _persist(self, decision: Decision, track: Track) -> tuple[Persistence, tuple[Reason, ...]]:
        """Save the decision's checkpoint; a failure is reported, and the turn goes on with what it has."""
        checkpoint = decision.checkpoint
        if checkpoint is None:
            return "not_needed", ()
        if not track.writable:
            detail = "a newer checkpoint has a format that this release does not know"
            return "not_allowed", (Reason(code="unverifiable", detail=detail),)
        new_summary = decision.summary if decision.plan is None or decision.plan.mode != "mask" else None
        rows = (*((new_summary,) if new_summary else ()), *decision.restored)
        try:
            await self.store.save(
                track.key, checkpoint, expected_version=checkpoint.version - 1, rows=rows, branch=track.branch
            )
        except VersionConflict as error:
            await track.reload()
            return "conflict", (Reason(code="conflict", detail=str(error)),)
        except StoreError as error:
            return "failed", (Reason(code="store", detail=str(error)),)
        await track.reload()
        self._meter.forget_all_but(row.id for row in track.rows)
        return "saved", ()

    def _done(
        self,
        decision: Decision,
        budget: Budget,
        persistence: Persistence,
        problems: tuple[Reason, ...],
        track: Track,
    ) -> Prepared:
        kept = track.checkpoint
        shown = decision.checkpoint or kept
        prepared = prepared_from(
            decision,
            tools=self.tools,
            budget=budget,
            counter=self._meter.counter,
            persistence=persistence,
            version=kept.version if kept else None,
            summary=shown.summary if shown else None,
            reasons=(*track.reasons, *decision.reasons, *problems),
        )
        if track is self._track:
            self._prepared_tokens = prepared.tokens
        for event in events_of(prepared):
            self.events.tell(event)
        return prepared

    # -- breakers ------------------------------------------------------------------------------------------------

    async def _turns_since(self, state: BreakerState) -> int:
        entries = await self.store.read(self.key, branch=self.branch, after=state.position)
        return sum(is_final(entry.message) for entry in entries)

    # -- events --------------------------------------------------------------------------------------------------

    def _starting(self, trigger: Trigger, messages: int, tokens: int) -> None:
        self.events.tell(CompactionStarted(trigger=trigger, messages=messages, tokens=tokens))


def session_fingerprint(policy: Policy) -> str:
    """Return the semantic fingerprint of a session's checkpoints: what must be equal for an old summary to be used."""
    return digest_text("session", policy.input_protocol, policy.output_format)


def _begins_or_ends_turn(message: Message) -> bool:
    return is_final(message) or (message.role == "user" and message.kind == "message")


async def _never(_: Trigger) -> bool:
    return False


def _split_incoming(history: tuple[Message, ...]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Split off the user's messages at the end that have no reply yet: the incoming turn."""
    start = len(history)
    while start and history[start - 1].role == "user" and history[start - 1].kind != "summary":
        start -= 1
    while start < len(history) and history[start].kind != "message":
        start += 1
    return history[:start], history[start:]
