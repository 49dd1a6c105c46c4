"""The session: append, prepare, compact by hand, fork, rewind, regenerate, edit, pin.

Every message is appended, durably, before anything else happens to it; what the model sees is computed from the log and
the newest checkpoint that is true of the branch (SPEC §12).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

import msgspec

from turnfold.core.anchoring import PREPARED_TOKENS, correction_factor
from turnfold.core.budget import Budget, corrected, with_input_budget
from turnfold.core.checkpoint import CheckpointKey, NextCheckpoint
from turnfold.core.groups import is_final
from turnfold.core.plan import Plan, Trigger
from turnfold.core.reasons import Reason
from turnfold.core.situation import Situation
from turnfold.core.summary_row import summary_message
from turnfold.core.view import closed_under_tools
from turnfold.errors import ContextOverflowError, NotFoundError, StoreError, VersionConflict
from turnfold.messages.canonical import digest_text
from turnfold.messages.log import MAIN, Branch, ConversationKey, LogEntry
from turnfold.messages.model import Message, Tool, text_message
from turnfold.ports import Store
from turnfold.runtime.breaking import BreakerKeeper, BreakerState
from turnfold.runtime.compactor import Compactor
from turnfold.runtime.decision import Decision, Persistence, Prepared, prepared_from
from turnfold.runtime.documents import Document
from turnfold.runtime.events import CompactionStarted, Event, Listener, ending
from turnfold.runtime.meter import Meter
from turnfold.session.track import Track

SCENARIO = "session"
MAX_OVERFLOWS = 3
"""Overflow retries in one turn; the last one needs no model (SPEC §12)."""

OVERFLOW_SHRINK = 0.85
"""After an overflow the next request may take this share of the one that the provider refused."""


class Standing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which branch is in use."""

    branch: str = MAIN


class Pins(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The pinned message ids, in the order they were pinned."""

    ids: tuple[str, ...] = ()


class Session:
    """One conversation. Use it as `async with Session(...) as session`.

    `budget` is what requests may take, `system` the fixed prompt, `model` the chat model's name as replies report it (for
    anchoring counts), `new_id` makes message and branch ids. `branch` None goes on where the conversation was left.
    """

    def __init__(
        self,
        store: Store,
        key: ConversationKey,
        compactor: Compactor,
        *,
        budget: Budget,
        new_id: Callable[[], str],
        system: str = "",
        tools: tuple[Tool, ...] = (),
        model: str | None = None,
        branch: str | None = None,
        listener: Listener | None = None,
    ) -> None:
        self.store, self.key, self.compactor, self.budget = store, key, compactor, budget
        self.tools, self.model, self.new_id, self._listener = tools, model, new_id, listener
        self._fixed = (text_message("system", "system", system),) if system else ()
        self._wanted_branch = branch
        self._meter = Meter(compactor.counter)
        self._lock = asyncio.Lock()
        self._standing = Document(store, key, "standing", Standing())
        self._pins = Document(store, key, "pins", Pins())
        self._breakers = BreakerKeeper(
            store, key, SCENARIO, configuration=compactor.configuration(budget), turns_since=self._turns_since
        )
        self._prepared_tokens: int | None = None
        self._overflows = 0
        self._pinned: frozenset[str] = frozenset()

    async def __aenter__(self) -> Self:
        branch = self._wanted_branch or (await self._standing.read()).branch
        await self._open(branch)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is held open: the store belongs to the caller."""

    async def _open(self, branch: str) -> None:
        policy = self.compactor.policy
        fingerprint = digest_text("session", policy.input_protocol, policy.output_format)
        key = CheckpointKey(
            tenant=self.key.tenant, user=self.key.user, conversation_id=self.key.conversation_id, scenario=SCENARIO
        )
        self._track = Track(self.store, key, branch, meter=self._meter, fingerprint=fingerprint)
        await self._track.load()
        self._pinned = frozenset((await self._pins.read()).ids)

    @property
    def branch(self) -> str:
        """The branch in use."""
        return self._track.branch

    # -- messages ------------------------------------------------------------------------------------------------

    async def append(self, *messages: Message) -> tuple[LogEntry, ...]:
        """Append messages to the branch; they are durable on return.

        Raises DuplicateMessageError for an id that the conversation has, StoreError when the store fails.
        """
        counter = self._meter.counter.name
        counts = {counter: [self._meter.message(message) for message in messages]}
        entries = await self.store.append(self.key, messages, branch=self.branch, counts=counts)
        if self._track.follows(entries):
            self._track.take(entries)
        if any(is_final(message) for message in messages):
            self._overflows = 0
        return entries

    async def say(self, text: str) -> LogEntry:
        """Append a user's text as a new message."""
        message = text_message(self.new_id(), "user", text, created_at=self.compactor.clock.now_ms())
        return (await self.append(message))[0]

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
            return await self._prepare(self._effective_budget(), trigger, focus, allow_model=allow_model)

    async def compact(self, instructions: str | None = None) -> Prepared:
        """Compact now, whatever the pressure; `instructions` say what the summary should dwell on."""
        return await self.prepare(trigger="manual", focus=instructions)

    async def overflowed(self) -> Prepared:
        """Return a smaller request after the provider refused the last one as too large.

        At most three times a turn, the last one without a model; then ContextOverflowError.
        """
        async with self._lock:
            await self._track.catch_up()
            budget = self._effective_budget()
            refused = min(self._prepared_tokens or budget.input_budget, budget.input_budget)
            self._overflows += 1
            if self._overflows > MAX_OVERFLOWS:
                parts = (("the request", refused),)
                raise ContextOverflowError(budget.input_budget, refused, 0, parts)
            shrunk = with_input_budget(budget, int(refused * OVERFLOW_SHRINK))
            return await self._prepare(shrunk, "overflow", None, allow_model=self._overflows < MAX_OVERFLOWS)

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
        fixed = {message.id for message in self._fixed}
        return tuple(message.id for message in (await self.view()).messages if message.id not in fixed)

    def _effective_budget(self) -> Budget:
        return corrected(self.budget, correction_factor(self._track.rows, self.model))

    async def _situation(self) -> Situation:
        track, checkpoint = self._track, self._track.checkpoint
        history, incoming = _split_incoming(track.history())
        pinned = closed_under_tools(history, self._pinned)
        covered_pins = await track.covered(self._pinned) if self._pinned and track.covered_position else ()
        shown = frozenset(checkpoint.pins) if checkpoint else frozenset()
        return Situation(
            fixed=self._fixed,
            tools=self.tools,
            checkpoint=checkpoint,
            summary=summary_message(checkpoint, self.compactor.policy) if checkpoint and checkpoint.summary else None,
            shown_pins=await track.covered(shown) if shown else (),
            covered_pins=covered_pins,
            pinned=pinned,
            request=track.request,
            history=history,
            incoming=incoming,
        )

    async def _prepare(
        self, budget: Budget, trigger: Trigger | None, focus: str | None, *, allow_model: bool
    ) -> Prepared:
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
        persistence, problems = await self._persist(decision)
        await self._breakers.note(decision, position=self._track.position)
        prepared = self._result(decision, budget, persistence, problems)
        self._prepared_tokens = prepared.tokens
        self._tell(ending(prepared))
        return prepared

    def _upcoming(self) -> NextCheckpoint:
        version = self._track.head_version + 1
        summary_id = f"summary-{SCENARIO}-{version}-{self.new_id()}"
        return NextCheckpoint(
            version=version,
            summary_id=summary_id,
            fingerprint=self._track.fingerprint,
            created_at=self.compactor.clock.now_ms(),
        )

    async def _persist(self, decision: Decision) -> tuple[Persistence, tuple[Reason, ...]]:
        """Save the decision's checkpoint; a failure is reported, and the turn goes on with what it has."""
        checkpoint, track = decision.checkpoint, self._track
        if checkpoint is None:
            return "not_needed", ()
        if not track.writable:
            detail = "a newer checkpoint has a format that this release does not know"
            return "not_allowed", (Reason(code="unverifiable", detail=detail),)
        new_summary = decision.summary if decision.plan is None or decision.plan.mode != "mask" else None
        rows = (*((new_summary,) if new_summary else ()), *decision.restored)
        try:
            await self.store.save(
                track.key, checkpoint, expected_version=track.head_version, rows=rows, branch=track.branch
            )
        except VersionConflict as error:
            await track.load()
            return "conflict", (Reason(code="conflict", detail=str(error)),)
        except StoreError as error:
            return "failed", (Reason(code="store", detail=str(error)),)
        await track.load()
        self._meter.forget_all_but(row.id for row in track.rows)
        return "saved", ()

    def _result(
        self, decision: Decision, budget: Budget, persistence: Persistence, problems: tuple[Reason, ...]
    ) -> Prepared:
        kept = self._track.checkpoint
        shown = decision.checkpoint or kept
        return prepared_from(
            decision,
            tools=self.tools,
            budget=budget,
            counter=self._meter.counter,
            persistence=persistence,
            version=kept.version if kept else None,
            summary=shown.summary if shown else None,
            reasons=(*self._track.reasons, *decision.reasons, *problems),
        )

    # -- breakers ------------------------------------------------------------------------------------------------

    async def _turns_since(self, state: BreakerState) -> int:
        entries = await self.store.read(self.key, branch=self.branch, after=state.position)
        return sum(is_final(entry.message) for entry in entries)

    # -- events --------------------------------------------------------------------------------------------------

    def _tell(self, event: Event | None) -> None:
        if self._listener is not None and event is not None:
            self._listener(event)

    def _starting(self, trigger: Trigger, messages: int, tokens: int) -> None:
        self._tell(CompactionStarted(trigger=trigger, messages=messages, tokens=tokens))

    # -- branches and pins ---------------------------------------------------------------------------------------

    async def fork(self, name: str | None = None, *, at: str | None = None) -> Branch:
        """Make a branch that ends with message `at` (None: where this one ends). The branch in use stays in use.

        Raises NotFoundError when the branch has no such message, VersionConflict when the name is taken.
        """
        await self._track.catch_up()
        position = self._track.position if at is None else await self._position_of(at)
        return await self.store.fork(self.key, name or self.new_id(), position=position, branch=self.branch)

    async def switch(self, branch: str) -> None:
        """Go on in another branch, now and after a restart. Raises NotFoundError when there is none of the name."""
        await self.store.head(self.key, branch=branch)
        await self._standing.change(lambda standing: msgspec.structs.replace(standing, branch=branch))
        self._prepared_tokens, self._overflows = None, 0
        await self._open(branch)

    async def rewind(self, to: str) -> Branch:
        """Go on from message `to`, in a new branch; what came after stays readable in the old one."""
        return await self._go_on(await self._position_of(to))

    async def regenerate(self) -> Branch:
        """Go on from the latest user message, in a new branch, so that its reply can be made again.

        Raises NotFoundError when the branch has no user message.
        """
        await self._track.catch_up()
        entries = await self.store.read(self.key, branch=self.branch)
        for entry in reversed(entries):
            if entry.message.role == "user" and entry.message.kind == "message":
                return await self._go_on(entry.position)
        raise NotFoundError("user message", self.branch, "There is nothing to regenerate yet.")

    async def edit(self, message_id: str, replacement: Message) -> Branch:
        """Put `replacement` (with an id of its own) in the place of a message, in a new branch that ends there."""
        branch = await self._go_on(await self._position_of(message_id) - 1)
        await self.append(replacement)
        return branch

    async def _go_on(self, position: int) -> Branch:
        branch = await self.store.fork(self.key, self.new_id(), position=position, branch=self.branch)
        await self.switch(branch.name)
        return branch

    async def _position_of(self, message_id: str) -> int:
        found = await self.store.find(self.key, (message_id,))
        if found and (entry := found[0]).seq is not None:
            on_path = await self.store.at_seq(self.key, entry.seq, branch=self.branch)
            if on_path is not None and on_path.message.id == message_id:
                return on_path.position
        raise NotFoundError("message", message_id, f"Branch {self.branch!r} does not hold it.")

    async def pin(self, *message_ids: str) -> None:
        """Keep messages verbatim through every compaction. A covered one comes back at the next compaction.

        Raises NotFoundError, and pins nothing, when the conversation lacks one of them.
        """
        known = {entry.message.id for entry in await self.store.find(self.key, message_ids)}
        for message_id in message_ids:
            if message_id not in known:
                raise NotFoundError("message", message_id)
        await self._change_pins(lambda ids: (*ids, *(i for i in message_ids if i not in ids)))

    async def unpin(self, *message_ids: str) -> None:
        """Let messages be summarized again, from the next compaction on."""
        await self._change_pins(lambda ids: tuple(i for i in ids if i not in message_ids))

    async def pins(self) -> tuple[str, ...]:
        """Return the pinned ids, in the order they were pinned."""
        return (await self._pins.read()).ids

    async def _change_pins(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> None:
        pins = await self._pins.change(lambda pins: Pins(ids=change(pins.ids)))
        self._pinned = frozenset(pins.ids)


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
