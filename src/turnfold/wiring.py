"""The only composition root: settings in, working objects out. Optional packages are imported here and nowhere earlier."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from turnfold.config.settings import Settings
from turnfold.errors import ConfigError
from turnfold.messages.log import ConversationKey
from turnfold.messages.model import Tool
from turnfold.runtime.compactor import Compactor
from turnfold.runtime.events import Listener
from turnfold.session import Session
from turnfold.tokens import make_counter

if TYPE_CHECKING:
    from turnfold.ports import ChatModel, Store, Summarizer, TokenCounter


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        """Milliseconds of UTC wall time since 1970."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        """Milliseconds of a clock that never goes back."""
        return time.monotonic_ns() / 1_000_000


def new_id() -> str:
    """Return a new id: sortable by time (ms, base 16), then 64 random bits."""
    return f"{time.time_ns() // 1_000_000:012x}-{secrets.token_hex(8)}"


def new_frame() -> str:
    """Return an unguessable word that marks a transcript's ends."""
    return secrets.token_hex(8)
