"""Branch path arithmetic: which stretch of which branch a window of a path is. Pure; every store walks paths with it.

A branch owns the rows (`fork_position`, `position`]. `base` is the branch that owns row `fork_position` of its path, which
is not always its parent: a fork below the parent's own fork leaves an older branch. So every step of a walk along `base`
reaches rows, and the walk is as long as the path has stretches, however many forks were made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from turnfold.errors import CorruptRowError
from turnfold.messages.log import Branch


class Node(NamedTuple):
    """What a walk needs of a branch. `number` is its number in the conversation, from 1 in order of creation."""

    number: int
    name: str
    base: int | None
    fork_position: int
    fork_seq: int
    position: int
    seq: int


class Head(NamedTuple):
    """A branch: its place in the tree, and what the port says of it."""

    node: Node
    branch: Branch


class Segment(NamedTuple):
    """The rows (`after`, `through`] of one branch."""

    node: Node
    after: int
    through: int


Lookup: TypeAlias = Callable[[int], Node]
"""Gives a branch by its number."""


def window(leaf: Node, lookup: Lookup, *, after: int = 0, limit: int | None = None) -> list[Segment]:
    """Return the stretches of `leaf`'s path that hold its rows after position `after`, at most `limit`, first rows first.

    Walks no further down than `after`. Raises CorruptRowError when a base does not lie below the branch that names it.
    """
    end = leaf.position if limit is None else min(leaf.position, after + limit)
    segments: list[Segment] = []
    node, through = leaf, leaf.position
    while through > after:
        start = max(node.fork_position, after)
        if start < min(through, end):
            segments.append(Segment(node, start, min(through, end)))
        if node.base is None or node.fork_position <= after:
            break
        through, node = node.fork_position, _below(node, lookup)
    return segments[::-1]


def owner_of_position(leaf: Node, lookup: Lookup, position: int) -> Node:
    """Return the branch that owns row `position` (1 to the path's length) of `leaf`'s path."""
    node = leaf
    while position <= node.fork_position and node.base is not None:
        node = _below(node, lookup)
    return node


def owner_of_seq(leaf: Node, lookup: Lookup, seq: int) -> Node:
    """Return the branch that owns message number `seq` (1 to the path's count) of `leaf`'s path."""
    node = leaf
    while seq <= node.fork_seq and node.base is not None:
        node = _below(node, lookup)
    return node


def _below(node: Node, lookup: Lookup) -> Node:
    if node.base is None:
        raise CorruptRowError(f"branch {node.name!r}", "it starts inside a path but names no branch below")
    base = lookup(node.base)
    if base.fork_position >= node.fork_position:
        raise CorruptRowError(f"branch {node.name!r}", f"the branch below it, {base.name!r}, does not own its fork")
    return base
