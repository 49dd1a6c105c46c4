"""Contract tests of `MessageLog` with branches: forks, paths, windows across forks."""

from __future__ import annotations

import pytest

from turnfold.errors import DuplicateMessageError, NotFoundError, VersionConflict
from turnfold.messages.canonical import GENESIS, chain_of
from turnfold.messages.log import Branch
from turnfold.ports import Store
from turnfold.testing.store_values import KEY, ids, numbered, said


async def plant(store: Store) -> dict[str, list[str]]:
    """Write a tree of branches and return each branch's path.

    main a1..a5; b leaves main at 3 and c leaves b at 4, above b's fork; d leaves c at 2, below both forks; e leaves d at
    0; f leaves c at its end; g leaves b exactly where b left main.
    """
    await store.append(KEY, numbered("a", 5))
    for name, parent, position in (
        ("b", "main", 3),
        ("c", "b", 4),
        ("d", "c", 2),
        ("e", "d", 0),
        ("f", "c", 6),
        ("g", "b", 3),
    ):
        await store.fork(KEY, name, position=position, branch=parent)
        await store.append(KEY, numbered(name, 2), branch=name)
    return {
        "main": ["a1", "a2", "a3", "a4", "a5"],
        "b": ["a1", "a2", "a3", "b1", "b2"],
        "c": ["a1", "a2", "a3", "b1", "c1", "c2"],
        "d": ["a1", "a2", "d1", "d2"],
        "e": ["e1", "e2"],
        "f": ["a1", "a2", "a3", "b1", "c1", "c2", "f1", "f2"],
        "g": ["a1", "a2", "a3", "g1", "g2"],
    }


class BranchSuite:
    """What every `MessageLog` keeps of branches."""

    async def test_a_fork_shares_its_prefix(self, store: Store) -> None:
        """A fork ends where it left the other branch, with that place's seq and chain; the other stays as it was."""
        messages = numbered("m", 4)
        await store.append(KEY, messages)
        before = await store.head(KEY)
        branch = await store.fork(KEY, "side", position=2)
        assert branch == Branch(
            name="side", parent="main", fork_position=2, position=2, seq=2, chain=chain_of(messages[:2])
        )
        assert await store.head(KEY, branch="side") == branch
        assert ids(await store.read(KEY, branch="side")) == ["m1", "m2"]
        (entry,) = await store.append(KEY, said("x"), branch="side", expected_position=2)
        assert (entry.branch, entry.position, entry.seq) == ("side", 3, 3)
        assert entry.chain == chain_of((*messages[:2], *said("x")))
        assert await store.head(KEY) == before
        assert ids(await store.read(KEY)) == ["m1", "m2", "m3", "m4"]

    async def test_a_fork_after_rows_outside_the_chain(self, store: Store) -> None:
        """A fork right after a summary has the seq and the chain of the message before it."""
        await store.append(KEY, said("a"))
        await store.append(KEY, said("s", "t", kind="summary"))
        await store.append(KEY, said("b"))
        branch = await store.fork(KEY, "side", position=3)
        assert (branch.position, branch.seq, branch.chain) == (3, 1, chain_of(said("a")))
        (entry,) = await store.append(KEY, said("c"), branch="side")
        assert (entry.position, entry.seq, entry.chain) == (4, 2, chain_of(said("a", "c")))
        assert await store.at_seq(KEY, 2, branch="side") == entry

    async def test_forks_at_the_ends(self, store: Store) -> None:
        """A fork at 0 starts empty, at the end it shares everything, and beyond the end it is NotFoundError."""
        await store.append(KEY, numbered("m", 2))
        assert await store.fork(KEY, "empty", position=0) == Branch(name="empty", parent="main")
        assert (await store.head(KEY, branch="empty")).chain == GENESIS
        assert await store.read(KEY, branch="empty") == ()
        assert (await store.fork(KEY, "whole", position=2)).seq == 2
        for position in (-1, 3, 10**30):
            with pytest.raises(NotFoundError):
                await store.fork(KEY, "beyond", position=position)
        assert [branch.name for branch in await store.branches(KEY)] == ["main", "empty", "whole"]

    async def test_a_taken_name_is_a_conflict(self, store: Store) -> None:
        """A branch is never replaced by another of its name, the main branch neither."""
        await store.append(KEY, said("a"))
        await store.fork(KEY, "side", position=1)
        for name in ("side", "main"):
            with pytest.raises(VersionConflict):
                await store.fork(KEY, name, position=0)
        assert (await store.head(KEY, branch="side")).position == 1

    async def test_a_fork_of_what_is_not_there(self, store: Store) -> None:
        """Neither a conversation nor a branch comes to be by forking it."""
        with pytest.raises(NotFoundError):
            await store.fork(KEY, "side", position=0)
        await store.append(KEY, said("a"))
        with pytest.raises(NotFoundError):
            await store.fork(KEY, "side", position=0, branch="none")

    async def test_paths_of_branches_of_branches(self, store: Store) -> None:
        """Branches of branches, forks at 0, at an end, and below the parent's own fork each read their own path."""
        paths = await plant(store)
        for name, path in paths.items():
            entries = await store.read(KEY, branch=name)
            assert ids(entries) == path
            assert [entry.position for entry in entries] == list(range(1, len(path) + 1))
            assert [entry.branch[0] for entry in entries] == [each[0].replace("a", "m") for each in path]
            assert entries[-1].chain == chain_of(entry.message for entry in entries)

    async def test_windows_across_forks(self, store: Store) -> None:
        """Every window of every path is that part of it, whichever branches own its rows."""
        paths = await plant(store)
        for name, path in paths.items():
            for after in range(len(path) + 2):
                for limit in (None, *range(len(path) + 2)):
                    end = len(path) if limit is None else after + limit
                    assert ids(await store.read(KEY, branch=name, after=after, limit=limit)) == path[after:end]

    async def test_at_seq_across_forks(self, store: Store) -> None:
        """Message n of every path is found, with reminders on some of the branches, and none beyond the end."""
        await plant(store)
        for name in ("main", "b", "c", "f"):
            await store.append(KEY, said(f"r{name}", kind="reminder"), branch=name)
            await store.append(KEY, said(f"z{name}"), branch=name)
        await store.fork(KEY, "h", position=9, branch="f")
        await store.append(KEY, said("zh"), branch="h")
        for branch in await store.branches(KEY):
            messages = [entry for entry in await store.read(KEY, branch=branch.name) if entry.seq is not None]
            assert [entry.seq for entry in messages] == list(range(1, branch.seq + 1))
            assert [await store.at_seq(KEY, entry.seq or 0, branch=branch.name) for entry in messages] == messages
            assert await store.at_seq(KEY, branch.seq + 1, branch=branch.name) is None

    async def test_branches_in_order_of_creation(self, store: Store) -> None:
        """All branches are listed, oldest first, each with where it left which other."""
        await plant(store)
        branches = await store.branches(KEY)
        assert [(branch.name, branch.parent, branch.fork_position) for branch in branches] == [
            ("main", None, 0),
            ("b", "main", 3),
            ("c", "b", 4),
            ("d", "c", 2),
            ("e", "d", 0),
            ("f", "c", 6),
            ("g", "b", 3),
        ]
        assert [await store.head(KEY, branch=branch.name) for branch in branches] == list(branches)

    async def test_ids_are_unique_over_all_branches(self, store: Store) -> None:
        """An id on one branch cannot be used on another, on the path or off it."""
        await plant(store)
        for taken in ("a1", "a5", "c1", "e2"):
            with pytest.raises(DuplicateMessageError):
                await store.append(KEY, (*said("new"), *said(taken)), branch="d")
        assert ids(await store.find(KEY, ["e2", "new", "a5"])) == ["e2", "a5"]

    async def test_branches_grow_side_by_side(self, store: Store) -> None:
        """Appends to one branch move no other, and a parent that grows does not grow into its forks."""
        paths = await plant(store)
        await store.append(KEY, said("late"))
        await store.append(KEY, said("late b"), branch="b")
        for name, path in paths.items():
            expected = path + {"main": ["late"], "b": ["late b"]}.get(name, [])
            assert ids(await store.read(KEY, branch=name)) == expected
        assert (await store.verify()).problems == ()

    async def test_a_long_line_of_forks(self, store: Store) -> None:
        """A conversation regenerated again and again, each time from the newest branch, stays readable to its start."""
        await store.append(KEY, said("m0"))
        branch = "main"
        for number in range(1, 60):
            await store.fork(KEY, f"b{number}", position=number, branch=branch)
            branch = f"b{number}"
            await store.append(KEY, said(f"m{number}", f"dropped{number}"), branch=branch)
        path = [*(f"m{number}" for number in range(60)), "dropped59"]
        assert ids(await store.read(KEY, branch=branch)) == path
        first = await store.at_seq(KEY, 1, branch=branch)
        assert first is not None
        assert first.message.id == "m0"
        assert (await store.verify()).problems == ()
