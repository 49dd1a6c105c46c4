"""From a tree of rows to a main path and branches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from turnfold.messages.log import MAIN
from turnfold.messages.model import Message
from turnfold.transcripts.document import Entry, Forked, Problem
from turnfold.transcripts.naming import branch_name


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a tree and the messages made from it (none for rows that only carry the tree on)."""

    key: str
    parent: str | None
    messages: tuple[Message, ...] = ()
    place: str = ""


def unroll(nodes: Sequence[Node], leaf: str | None = None) -> Iterator[Entry | Forked | Problem]:
    """Yield the main path, then every other leaf as a branch that leaves a path already given.

    In: nodes in file order, keys unique; `leaf` ends the main path (default: the last node). A parent that is not there
    makes a root; a circle is cut and reported. Every node's messages come out exactly once.
    """
    if not nodes:
        return
    tree = _Tree(nodes)
    yield from tree.cut_circles()
    yield from tree.path(leaf if leaf in tree.nodes else nodes[-1].key, MAIN)
    for node in nodes:
        if node.key not in tree.owner and node.key not in tree.with_children:
            yield from tree.branch(node.key)


def ancestors(nodes: Mapping[str, Node], key: str) -> list[str]:
    """Return the keys above a node, nearest first; a circle ends the walk."""
    path: dict[str, None] = {}
    here = nodes[key].parent
    while here is not None and here in nodes and here not in path and here != key:
        path[here] = None
        here = nodes[here].parent
    return list(path)


def last_message(nodes: Mapping[str, Node], keys: Sequence[str]) -> str | None:
    """Return the id of the last message of kind `message` on a path given nearest first, None when it has none."""
    for key in keys:
        for message in reversed(nodes[key].messages):
            if message.kind == "message":
                return message.id
    return None


class _Tree:
    """Nodes by key, and which branch each was given to."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = {node.key: node for node in nodes}
        self.parents = {node.key: node.parent if node.parent in self.nodes else None for node in nodes}
        self.owner: dict[str, str] = {}
        self.with_children: set[str] = set()

    def cut_circles(self) -> Iterator[Problem]:
        """Make every node reach a root."""
        safe: set[str] = set()
        for key in self.nodes:
            walk: dict[str, None] = {}
            here: str | None = key
            while here is not None and here not in safe and here not in walk:
                walk[here] = None
                here = self.parents[here]
            if here is not None and here in walk:
                self.parents[here] = None
                place = self.nodes[here].place
                yield Problem(
                    place=place, reason="its parents form a circle; it was taken as a first row", level="note"
                )
            safe.update(walk)
        self.with_children = {parent for parent in self.parents.values() if parent is not None}

    def unowned_run(self, leaf: str) -> list[Node]:
        """Return the nodes up to `leaf` that no branch has yet, oldest first."""
        run: list[Node] = []
        here: str | None = leaf
        while here is not None and here not in self.owner:
            run.append(self.nodes[here])
            here = self.parents[here]
        return run[::-1]

    def path(self, leaf: str, branch: str) -> Iterator[Entry]:
        """Give the run up to `leaf` to `branch` and yield its messages."""
        for node in self.unowned_run(leaf):
            self.owner[node.key] = branch
            for message in node.messages:
                yield Entry(message=message, branch=branch, place=node.place)

    def branch(self, leaf: str) -> Iterator[Entry | Forked]:
        """Yield the run up to `leaf` as a branch of its own, if it holds any message."""
        run = self.unowned_run(leaf)
        first = next((message for node in run for message in node.messages), None)
        if first is None:
            return
        parent, after = self.anchor(self.parents[run[0].key])
        name = branch_name(first.id)
        yield Forked(name=name, parent=parent, after=after)
        yield from self.path(leaf, name)

    def anchor(self, key: str | None) -> tuple[str, str | None]:
        """Return the branch and id of the last message at or above `key`."""
        while key is not None:
            node = self.nodes[key]
            if node.messages:
                return self.owner[key], node.messages[-1].id
            key = self.parents[key]
        return MAIN, None
