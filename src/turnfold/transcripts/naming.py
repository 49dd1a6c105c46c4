"""Stable ids for messages of formats that have none.

An id is derived from the file's content up to and including the message, its ordinal and its swipe. So importing the
same file twice gives the same ids, and a file that has only grown gives its old messages their old ids.
"""

from __future__ import annotations

from hashlib import blake2b

from turnfold.messages.canonical import GENESIS, digest, extend_chain
from turnfold.messages.model import Message

ID_BYTES = 12
"""96 bits: no practical collision within a conversation, and short enough to read."""


def short_hash(text: str, size: int = ID_BYTES) -> str:
    """Return a hexadecimal hash of text, `size` bytes long."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


class Namer:
    """Names the messages of one conversation in order; `prefix` says which format they came from."""

    def __init__(self, prefix: str) -> None:
        self._prefix, self._chain, self._ordinal = prefix, GENESIS, 0

    def name(self, message: Message) -> str:
        """Return the id of the next message on the path, and step on. The message's own id does not matter."""
        self._chain = extend_chain(self._chain, digest(message))
        self._ordinal += 1
        return f"{self._prefix}-{short_hash(f'{self._chain}|{self._ordinal}')}"

    def name_swipe(self, message: Message, swipe: int) -> str:
        """Return the id of another version of the next message, without stepping on."""
        chain = extend_chain(self._chain, digest(message))
        return f"{self._prefix}-{short_hash(f'{chain}|{self._ordinal + 1}|{swipe}')}"


def branch_name(first_id: str) -> str:
    """Return the name of a branch by its first own message: it stays when the branch grows."""
    return f"branch-{short_hash(first_id, 5)}"
