"""The breakers of one conversation and scenario, kept across restarts (SPEC §8)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import msgspec

from turnfold.core.breakers import Breaker
from turnfold.core.plan import Trigger
from turnfold.errors import StoreError
from turnfold.messages.log import ConversationKey
from turnfold.ports import StateStore
from turnfold.runtime.decision import Decision
from turnfold.runtime.documents import Document

LIMIT_MS = 2_000
"""How long a turn waits for the breaker's state."""


class BreakerState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The breaker, and where its state was written, from which closed turns count: a position in the branch, or the last
    message of a carried history.
    """

    breaker: Breaker = Breaker()
    position: int = 0
    message_id: str = ""


class BreakerKeeper:
    """Asks and tells the stored breaker. `turns_since` counts the closed turns since a state was written."""

    def __init__(
        self,
        store: StateStore,
        key: ConversationKey,
        scenario: str,
        *,
        configuration: str,
        turns_since: Callable[[BreakerState], Awaitable[int]],
    ) -> None:
        self._document = Document(store, key, f"breaker:{scenario}", BreakerState())
        self._configuration, self._turns_since = configuration, turns_since

    async def allows(self, trigger: Trigger) -> bool:
        """Whether a model may be called. A state that cannot be read in time allows it: the breaker only saves money."""
        try:
            async with asyncio.timeout(LIMIT_MS / 1000):
                state = await self._document.read()
                turns = 0 if state.breaker.opened_at is None else await self._turns_since(state)
        except (StoreError, TimeoutError):
            return True
        return state.breaker.allows(trigger, turns, self._configuration)

    async def note(self, decision: Decision, *, position: int = 0, message_id: str = "") -> None:
        """Store what the decision means for the breaker; a store that fails here fails nothing else."""
        if decision.verdict == "none":
            return

        def changed(state: BreakerState) -> BreakerState:
            breaker = state.breaker.after(decision.verdict, decision.trigger or "manual", 0, self._configuration)
            if breaker == state.breaker:
                return state
            return BreakerState(breaker=breaker, position=position, message_id=message_id)

        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(LIMIT_MS / 1000):
                await self._document.change(changed)
