"""What a chat backend brings to the Compact runtime for one reply, and the answers that only the request gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from turnfold.core.groups import explicit_groups
from turnfold.core.reasons import Reason
from turnfold.errors import InputError
from turnfold.messages.model import Message, Tool

MUTATING_TYPES = frozenset({"chat", "continue", "auto_reply"})
"""Request types that may change checkpoints (SPEC §9); any other type only reads them."""


class CompactRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `history` may be only the conversation's recent part; a message without a persistent id has an empty
    one. `incoming` is the user's new line. `injected` stands just before it and may change freely. `role_id` and `persona`
    name the character: another one makes old summaries unusable, and None, where the character could not be looked up,
    leaves them unverified. `groups` are message ids, for explicit boundaries. `max_output` is this turn's, in tokens.

    `checkpoint_mutation_allowed` None follows `request_type`. `force_compaction` compacts below the trigger line too.
    """

    conversation_id: str
    user: str = ""
    tenant: str = ""
    request_type: str = "chat"
    role_id: str = ""
    persona: str | None = ""
    fixed_prompt: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    history: tuple[Message, ...] = ()
    incoming: tuple[Message, ...] = ()
    injected: tuple[Message, ...] = ()
    max_output: int | None = None
    groups: tuple[tuple[str, ...], ...] | None = None
    checkpoint_mutation_allowed: bool | None = None
    force_compaction: bool = False

    @property
    def mutation_allowed(self) -> bool:
        """Whether this request may write or invalidate checkpoints."""
        if self.checkpoint_mutation_allowed is None:
            return self.request_type in MUTATING_TYPES
        return self.checkpoint_mutation_allowed


def identified(request: CompactRequest) -> tuple[CompactRequest, frozenset[str]]:
    """Return the request with a passing id for every message that lacks one, and the set of those passing ids.

    Raises InputError for an id that occurs twice, and for history or incoming rows of another kind than `message`.
    """
    taken: set[str] = set()
    passing: set[str] = set()
    named = {name: tuple(_named(request, name, taken, passing)) for name in _PARTS}
    return msgspec.structs.replace(request, **named), frozenset(passing)


_PARTS = ("fixed_prompt", "history", "injected", "incoming")


def _named(request: CompactRequest, part: str, taken: set[str], passing: set[str]) -> Iterator[Message]:
    for index, message in enumerate(getattr(request, part)):
        place = f"{part}[{index}]"
        if message.kind != "message" and part in ("history", "incoming"):
            raise InputError(f"{place}: its kind is {message.kind!r}. Send what is no message as `injected`.")
        if not message.id:
            message = msgspec.structs.replace(message, id=place)
            passing.add(place)
        if message.id in taken:
            raise InputError(f"{place}: id {message.id!r} occurs twice. Give every message an id of its own.")
        taken.add(message.id)
        yield message


def groups_after(
    history: Sequence[Message], groups: Sequence[Sequence[str]] | None, start: int
) -> tuple[tuple[int, int], ...] | None:
    """Return the caller's groups as ranges over `history[start:]`; None when the caller gave none.

    A group that the coverage ends in counts with what is left of it. Raises GroupsError.
    """
    if groups is None:
        return None
    ranges = explicit_groups(history, groups)
    return tuple((max(first, start) - start, end - start) for first, end in ranges if end > start)


def persistence_obstacle(covered: Sequence[Message], passing: frozenset[str]) -> Reason | None:
    """Return why the coverage could not be found again: a covered message without a persistent id."""
    for message in covered:
        if message.id in passing:
            return Reason(code="no_persistent_id", detail=f"covered message {message.id} has no id of its own")
    return None
