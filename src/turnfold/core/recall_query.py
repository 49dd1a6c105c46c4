"""What a search asks for: untrusted text -> terms to look up, phrases to insist on, and the rows that it may reach.

Nothing in the text is an operator but quotation marks and a star at a word's end, so nothing can be wrong with it; what
is looked up is bounded, whatever its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

import msgspec

from turnfold.core.text.commonness import search_weight
from turnfold.core.text.terms import identifier_terms, sequence, terms
from turnfold.messages.log import ConversationKey
from turnfold.messages.model import Role

READ_CHARS = 8_000
"""Characters of a query that are read: a pasted file says in its first pages what it is about."""
MAX_TERMS = 24
"""Terms looked up; of more, those that tell most."""
MAX_PHRASES, MAX_PREFIXES = 4, 8
MIN_PREFIX = 2
"""Characters before a star; a shorter beginning is looked up as a word of its own."""

_QUOTED = re.compile(r'"([^"]{1,400})"|“([^”]{1,400})”|「([^」]{1,400})」|『([^』]{1,400})』')
_PREFIX = re.compile(r"([A-Za-z0-9]+)\*(?!\w)", re.ASCII)


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A search, taken apart.

    `weights` gives each term to look up with how much it tells by itself, from 0 to 1; one match is enough for a hit.
    `pairs` are those that stand side by side. `prefixes` are beginnings of words, `phrases` sequences of terms that a hit must hold word for word.
    """

    weights: dict[str, float] = {}
    pairs: frozenset[tuple[str, str]] = frozenset()
    prefixes: tuple[str, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to look up."""
        return not (self.weights or self.prefixes)


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """The rows that a search may reach: one user's, never another's.

    `conversation_id` None means all of the user's conversations; `branch` (of one conversation) its path alone. `roles`
    empty means every role. `after` (inclusive) and `before` (exclusive) bound `created_at`, in ms of UTC; a message
    without a time is then left out.
    """

    tenant: str = ""
    user: str = ""
    conversation_id: str | None = None
    branch: str | None = None
    roles: tuple[Role, ...] = ()
    after: int | None = None
    before: int | None = None

    def admits(self, key: ConversationKey, role: Role, created_at: int | None) -> bool:
        """Whether a row may be a hit, its branch apart."""
        if (key.tenant, key.user) != (self.tenant, self.user) or self.conversation_id not in (
            None,
            key.conversation_id,
        ):
            return False
        if self.roles and role not in self.roles:
            return False
        if self.after is None and self.before is None:
            return True
        low, high = self.after, self.before
        return created_at is not None and (low is None or created_at >= low) and (high is None or created_at < high)


def scope_of(key: ConversationKey, *, branch: str | None = None) -> Scope:
    """Return the scope of one conversation, on one branch's path or (None) on all."""
    return Scope(tenant=key.tenant, user=key.user, conversation_id=key.conversation_id, branch=branch)


def parse_query(text: str) -> Query:
    """Return what a search for `text` looks up. Never raises; text without words gives an empty query."""
    text = text[:READ_CHARS]
    phrases = tuple(dict.fromkeys(filter(None, map(sequence, _quoted(text)))))[:MAX_PHRASES]
    prefixes = tuple(dict.fromkeys(word.lower() for word in _PREFIX.findall(text) if len(word) >= MIN_PREFIX))
    plain = _PREFIX.sub(lambda match: "" if len(match.group(1)) >= MIN_PREFIX else match.group(1), text)
    words = terms(plain)
    return Query(
        weights=_weights((*words, *identifier_terms(plain))),
        pairs=frozenset(pairwise(words)),
        prefixes=prefixes[:MAX_PREFIXES],
        phrases=phrases,
    )


def _quoted(text: str) -> Iterable[str]:
    return ("".join(match.groups("")) for match in _QUOTED.finditer(text))


def _weights(words: Iterable[str]) -> dict[str, float]:
    """Return the terms to look up. Words that hold sentences together count only where there are no others."""
    found = dict.fromkeys(words)
    telling = {term: weight for term in found if (weight := search_weight(term)) > 0}
    chosen = telling or dict.fromkeys(found, 1.0)
    if len(chosen) <= MAX_TERMS:
        return chosen
    most = frozenset(sorted(chosen, key=lambda term: (-chosen[term], -len(term)))[:MAX_TERMS])
    return {term: weight for term, weight in chosen.items() if term in most}
