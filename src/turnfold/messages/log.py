"""Values of the message log: keys, branches and entries. Stores keep them, everything above reads them.

A conversation is a tree of branches. A branch's path is its parent's path up to the fork plus its own rows, so nothing
is copied. `position` counts every row along a path from 1; `seq` counts only rows of kind `message`, which alone are in
the chain (SPEC §1, §2).
"""

from __future__ import annotations

import msgspec

from turnfold.messages.canonical import GENESIS
from turnfold.messages.model import Message

MAIN = "main"
"""The branch that a conversation starts with."""


class ConversationKey(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Names one conversation. Tenant and user come first everywhere, so data can be partitioned and isolated by them."""

    conversation_id: str
    tenant: str = ""
    user: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.tenant, self.user, self.conversation_id) if part)


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """One branch and where its path ends: `position` and `seq` of its last row, `chain` of its last message.

    `parent` and `fork_position` say where it left another branch: it shares that branch's first `fork_position` rows.
    """

    name: str = MAIN
    parent: str | None = None
    fork_position: int = 0
    position: int = 0
    seq: int = 0
    chain: str = GENESIS


class LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One row on a path. `branch` is the branch that owns it. `seq` is None for kinds outside the chain; `chain` is then
    the chain of the message before it. `counts` holds tokens by counter name.
    """

    message: Message
    branch: str
    position: int
    seq: int | None
    chain: str
    counts: dict[str, int] = {}


class ConversationInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a listing shows of a conversation: its key, branches and the number of rows over all of them."""

    key: ConversationKey
    branches: tuple[str, ...]
    rows: int
    updated_at: int


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `verify` read, and the first difference of each conversation that has one, as a sentence."""

    conversations: int = 0
    messages: int = 0
    checkpoints: int = 0
    problems: tuple[str, ...] = ()
