"""The log side of a session: append, fork, switch, rewind, regenerate, edit, pin.

Every message is appended, durably, before anything else happens to it. Editing and rewinding make branches; nothing that
was said is changed (SPEC §2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

import msgspec

from turnfold.core.checkpoint import Checkpoint, CheckpointKey
from turnfold.core.groups import pair_tools
from turnfold.errors import DuplicateMessageError, NotFoundError, StoreError
from turnfold.messages.log import MAIN, Branch, ConversationKey, LogEntry
from turnfold.messages.model import Message, ToolCall, text_message
from turnfold.ports import Clock, Store
from turnfold.runtime.documents import Document
from turnfold.runtime.meter import Meter
from turnfold.session.prompting import PromptKeeper
from turnfold.session.track import Track

SCENARIO = "session"


class Standing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which branch is in use."""

    branch: str = MAIN


class Pins(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The pinned message ids, in the order they were pinned."""

    ids: tuple[str, ...] = ()


class Conversation:
    """One conversation's log, the branch in use and its pins. A Session adds requests to it.

    `branch` None goes on where the conversation was left.
    """

    def __init__(
        self,
        store: Store,
        key: ConversationKey,
        *,
        meter: Meter,
        fingerprint: str,
        prompt: PromptKeeper,
        clock: Clock,
        new_id: Callable[[], str],
        model: str | None = None,
        branch: str | None = None,
    ) -> None:
        self.store, self.key, self.new_id = store, key, new_id
        self._meter, self._fingerprint, self._prompt, self._clock = meter, fingerprint, prompt, clock
        self.model, self._wanted_branch = model, branch
        self._standing = Document(store, key, "standing", Standing())
        self._pins = Document(store, key, "pins", Pins())
        self._pinned: frozenset[str] = frozenset()

    async def __aenter__(self) -> Self:
        await self._open(self._wanted_branch or (await self._standing.read()).branch)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is held open: the store belongs to the caller."""

    async def _open(self, branch: str) -> None:
        key = CheckpointKey(
            tenant=self.key.tenant, user=self.key.user, conversation_id=self.key.conversation_id, scenario=SCENARIO
        )
        self._track = Track(self.store, key, branch, meter=self._meter, fingerprint=self._fingerprint, model=self.model)
        await self._track.load()
        self._pinned = frozenset((await self._pins.read()).ids)

    @property
    def branch(self) -> str:
        """The branch in use."""
        return self._track.branch

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The newest checkpoint that is true of the branch in use, as last read."""
        return self._track.checkpoint

    # -- messages ------------------------------------------------------------------------------------------------

    async def append(self, *messages: Message) -> tuple[LogEntry, ...]:
        """Append messages to the branch; they are durable on return.

        A change of memory is told before a user's message. Raises DuplicateMessageError for an id that the conversation
        has, StoreError when the store fails.
        """
        if any(message.role == "user" for message in messages):
            await self._tell_memory()
        return await self._append(messages)

    async def _append(self, messages: Sequence[Message]) -> tuple[LogEntry, ...]:
        counter = self._meter.counter.name
        counts = {counter: [self._meter.message(message) for message in messages]}
        entries = await self.store.append(self.key, messages, branch=self.branch, counts=counts)
        if self._track.follows(entries):
            self._track.take(entries)
        return entries

    async def say(self, text: str) -> LogEntry:
        """Append a user's text as a new message."""
        message = text_message(self.new_id(), "user", text, created_at=self._clock.now_ms())
        return (await self.append(message))[0]

    async def waiting_calls(self) -> tuple[ToolCall, ...]:
        """Return the tool calls at the end of the branch that have no result yet, in order."""
        await self._track.catch_up()
        rows = self._track.history()
        start = pair_tools(rows).pending_from
        if start is None:
            return ()
        answered = Counter(result.call_id for row in rows[start:] for result in row.results)
        waiting = []
        for call in rows[start].calls:
            if answered[call.id]:
                answered[call.id] -= 1
            else:
                waiting.append(call)
        return tuple(waiting)

    async def _tell_memory(self) -> None:
        """Append the memory update that is due, if one is."""
        update = await self._prompt.update(self._track.checkpoint, self._track.memory_update)
        if update is not None:
            await self._append((update,))

    # -- branches ------------------------------------------------------------------------------------------------

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
        """Put `replacement` (with an id of its own) in the place of a message, in a new branch that ends there.

        Raises NotFoundError, DuplicateMessageError or StoreError; the branch in use then stays in use.
        """
        position, before = await self._position_of(message_id), self.branch
        if await self.store.find(self.key, (replacement.id,)):
            raise DuplicateMessageError(replacement.id)
        branch = await self._go_on(position - 1)
        try:
            await self.append(replacement)
        except StoreError:
            await self.switch(before)
            raise
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

    # -- pins ----------------------------------------------------------------------------------------------------

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
