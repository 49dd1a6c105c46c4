"""Unrolling a tree of rows: every message once, each branch after its parent, whatever the parents say."""

from hypothesis import given
from hypothesis import strategies as st

from turnfold.messages.log import MAIN
from turnfold.messages.model import Message, Text
from turnfold.transcripts.document import Entry, Forked, Problem
from turnfold.transcripts.tree import Node, ancestors, unroll

keys = st.integers(0, 11).map(str)
graphs = st.dictionaries(keys, st.tuples(st.none() | keys, st.booleans()), min_size=1, max_size=12)


def nodes_of(graph: dict[str, tuple[str | None, bool]]) -> list[Node]:
    """Nodes of a graph given as key -> (parent, whether it holds a message)."""
    return [
        Node(key=key, parent=parent, messages=(Message(id=key, role="user", parts=(Text(text=key),)),) if holds else ())
        for key, (parent, holds) in graph.items()
    ]


@given(graphs, st.none() | keys)
def test_every_message_comes_out_once_and_branches_leave_known_places(
    graph: dict[str, tuple[str | None, bool]], leaf: str | None
) -> None:
    """Circles, missing parents and several roots lose nothing; a fork names a message that is already on its parent."""
    nodes = nodes_of(graph)
    paths: dict[str, list[str]] = {MAIN: []}
    for event in unroll(nodes, leaf):
        match event:
            case Forked(name=name, parent=parent, after=after):
                assert name not in paths
                assert after is None or after in paths[parent]
                shared = paths[parent][: paths[parent].index(after) + 1] if after is not None else []
                paths[name] = list(shared)
            case Entry(message=message, branch=branch):
                assert message.id not in paths[branch]
                paths[branch].append(message.id)
            case Problem(reason=reason):
                assert "circle" in reason
    out = {message_id for path in paths.values() for message_id in path}
    assert out == {key for key, (_, holds) in graph.items() if holds}


@given(st.lists(st.integers(0, 9), min_size=1, max_size=10))
def test_the_path_to_the_leaf_is_the_main_one(parents: list[int]) -> None:
    """In a sound tree the main path is the chain of parents above the leaf, oldest first."""
    graph = {str(n): (str(parent) if parent < n else None, True) for n, parent in enumerate(parents)}
    nodes = nodes_of(graph)
    leaf = nodes[-1].key
    main = [event.message.id for event in unroll(nodes, leaf) if isinstance(event, Entry) and event.branch == MAIN]
    assert main == [*reversed(ancestors({node.key: node for node in nodes}, leaf)), leaf]


def test_a_deep_tree_is_no_recursion() -> None:
    """A hundred thousand rows in a chain are unrolled without nesting calls."""
    nodes = nodes_of({str(n): (str(n - 1) if n else None, True) for n in range(100_000)})
    assert sum(isinstance(event, Entry) for event in unroll(nodes)) == 100_000
