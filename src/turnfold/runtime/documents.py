"""Small documents of a conversation, kept beside its log: read and changed by compare-and-swap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from turnfold.errors import CorruptRowError, VersionConflict
from turnfold.messages.log import ConversationKey
from turnfold.ports import StateStore

D = TypeVar("D", bound=msgspec.Struct)

RETRIES = 16
"""Lost races in a row after which something else is wrong; each retry re-reads what the winner wrote."""


class Document(Generic[D]):
    """One named document of a conversation, read and changed by compare-and-swap."""

    def __init__(self, store: StateStore, key: ConversationKey, name: str, default: D) -> None:
        self._store, self._key, self._name, self._default = store, key, name, default

    async def read(self) -> D:
        """Return the document, or the default where none was written. Raises CorruptRowError."""
        return (await self._versioned())[1]

    async def _versioned(self) -> tuple[int, D]:
        version, data = await self._store.get_state(self._key, self._name)
        if not version:
            return 0, self._default
        try:
            return version, msgspec.json.decode(data, type=type(self._default))
        except msgspec.DecodeError as error:
            raise CorruptRowError(f"{self._key} state {self._name!r}", str(error)) from error

    async def change(self, change: Callable[[D], D]) -> D:
        """Apply `change` to the newest document and store it; a lost race is retried on what the winner wrote."""
        version = 0
        for _ in range(RETRIES):
            version, document = await self._versioned()
            changed = change(document)
            if changed == document:
                return document
            try:
                await self._store.put_state(
                    self._key, self._name, msgspec.json.encode(changed), expected_version=version
                )
            except VersionConflict:
                continue
            return changed
        raise VersionConflict(f"{self._key} state {self._name!r}", version, version + 1)
