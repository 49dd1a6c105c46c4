"""A session's system prompt: compiled once, the same bytes until a compaction recompiles it, updates told in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from turnfold.core.checkpoint import Checkpoint
from turnfold.core.system_prompt import (
    CompiledPrompt,
    PromptInput,
    compile_prompt,
    told,
    update_message,
)
from turnfold.messages.log import ConversationKey
from turnfold.messages.model import Message, text_message
from turnfold.ports import Clock, StateStore
from turnfold.runtime.documents import Document

PromptSource: TypeAlias = Callable[[], Awaitable[PromptInput]]
"""Reads base text and memory files as they are now."""

FIXED_ID = "system"


class PromptKeeper:
    """Keeps the prompt of one conversation. Without memory files a plain text needs no keeping."""

    def __init__(
        self,
        store: StateStore,
        key: ConversationKey,
        source: str | PromptSource,
        *,
        clock: Clock,
        new_id: Callable[[], str],
    ) -> None:
        self._source, self._clock, self._new_id = source, clock, new_id
        self._first = Document(store, key, "prompt", CompiledPrompt(text="", revision=""))
        self._initial = compile_prompt(PromptInput(base=source)) if isinstance(source, str) else None
        self._shown: tuple[CompiledPrompt, tuple[Message, ...]] | None = None

    async def current(self) -> PromptInput:
        """Return what the prompt would be compiled from now."""
        return PromptInput(base=self._source) if isinstance(self._source, str) else await self._source()

    async def in_force(self, checkpoint: Checkpoint | None) -> CompiledPrompt:
        """Return the prompt to send: the one compiled at the checkpoint, else the conversation's first. Writes nothing."""
        if checkpoint and checkpoint.prompt and not isinstance(self._source, str):
            return checkpoint.prompt
        if self._initial is None:
            kept = await self._first.read()
            if not kept.revision:
                return compile_prompt(await self.current())
            self._initial = kept
        return self._initial

    async def _settled(self, checkpoint: Checkpoint | None) -> CompiledPrompt:
        """Return the prompt in force; the first one of a conversation is kept, so that it is the same after a restart."""
        prompt = await self.in_force(checkpoint)
        if self._initial is None and not (checkpoint and checkpoint.prompt):
            self._initial = prompt = await self._first.change(lambda kept: kept if kept.revision else prompt)
        return prompt

    async def fixed(self, checkpoint: Checkpoint | None) -> tuple[Message, ...]:
        """Return the messages of the prompt in force, the same objects as long as it is the same."""
        prompt = await self.in_force(checkpoint)
        if self._shown is None or self._shown[0] != prompt:
            self._shown = (prompt, fixed_messages(prompt))
        return self._shown[1]

    async def update(self, checkpoint: Checkpoint | None, newest: Message | None) -> Message | None:
        """Return the update message that is due, or None when the reader of the prompt and of
        the `newest` update knows the memory.
        """
        if isinstance(self._source, str):
            return None
        given = await self.current()
        revision, files = told(await self._settled(checkpoint), newest)
        if compile_prompt(given).revision == revision:
            return None
        return update_message(self._new_id(), files, given, created_at=self._clock.now_ms())


def fixed_messages(prompt: CompiledPrompt) -> tuple[Message, ...]:
    """Return the fixed prompt's messages: one, or none for an empty text."""
    return (text_message(FIXED_ID, "system", prompt.text),) if prompt.text else ()
