"""Opening the store and the session that a command looks at or works on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from turnfold import wiring
from turnfold.cli.options import settings_from
from turnfold.config.settings import Settings
from turnfold.core.checkpoint import CheckpointKey
from turnfold.errors import NotFoundError
from turnfold.ports import Store
from turnfold.session import Session
from turnfold.session.conversation import SCENARIO


@asynccontextmanager
async def reading(**flags: Any) -> AsyncIterator[tuple[Store, Settings]]:
    """Open the store for reading only. Raises NotFoundError when the file is not there."""
    settings = settings_from(**flags).settings
    async with wiring.open_store(settings, read_only=True) as store:
        yield store, settings


@asynccontextmanager
async def session_of(*, write: bool, branch: str | None = None, **flags: Any) -> AsyncIterator[Session]:
    """Open the session of the conversation that the flags name. Raises NotFoundError when there is no such conversation."""
    settings = settings_from(**flags).settings
    async with wiring.open_store(settings, read_only=not write) as store:
        await require_conversation(store, settings)
        async with wiring.open_session(store, settings, branch=branch) as session:
            yield session


async def require_conversation(store: Store, settings: Settings) -> None:
    """Raise NotFoundError, with what there is instead, when the store lacks the settings' conversation."""
    try:
        await store.branches(wiring.conversation_key(settings))
    except NotFoundError:
        found = await store.conversations(tenant=settings.tenant, user=settings.user, limit=5)
        names = ", ".join(repr(info.key.conversation_id) for info in found)
        cure = f"There are: {names}." if names else "The store has none for this tenant and user."
        raise NotFoundError("conversation", settings.conversation, cure) from None


def checkpoint_key(settings: Settings, scenario: str = SCENARIO) -> CheckpointKey:
    """Return the key of the conversation's checkpoints."""
    return CheckpointKey(
        tenant=settings.tenant, user=settings.user, conversation_id=settings.conversation, scenario=scenario
    )
