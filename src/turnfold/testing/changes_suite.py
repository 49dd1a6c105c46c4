"""Contract tests of `Store.changes`: one look at checkpoints and log that says what each of them says alone."""

from __future__ import annotations

import msgspec
import pytest

from turnfold.errors import NotFoundError
from turnfold.ports import Changes, Store
from turnfold.testing.store_values import KEY, LINE, checkpoint, ids, numbered, said


class ChangesSuite:
    """What every `Store` tells a session that looks again."""

    async def test_nothing_yet(self, store: Store) -> None:
        """A conversation that is yet to be has nothing, whatever the position asked; another branch is NotFoundError."""
        assert await store.changes(LINE) == await store.changes(LINE, after=7) == Changes()
        with pytest.raises(NotFoundError):
            await store.changes(LINE, branch="side")

    async def test_changes_are_what_the_parts_say(self, store: Store) -> None:
        """Version, end and rows are those of `head_version`, `head` and `read`, from every position of every branch."""
        await store.append(KEY, numbered("m", 3), counts={"bpe": [1, 2, 3]})
        await store.fork(KEY, "side", position=2)
        await store.append(KEY, said("x"), branch="side")
        await store.save(LINE, checkpoint(1), expected_version=0, rows=said("s", kind="summary"), branch="side")
        for branch in ("main", "side"):
            for after in range(-1, 7):
                changes = await store.changes(LINE, branch=branch, after=after)
                assert changes.head_version == await store.head_version(LINE) == 1
                assert changes.position == (await store.head(KEY, branch=branch)).position
                assert changes.entries == await store.read(KEY, branch=branch, after=after)

    async def test_a_branch_that_is_not_there(self, store: Store) -> None:
        """A branch that nobody made is NotFoundError, not an empty one."""
        await store.append(KEY, said("a"))
        with pytest.raises(NotFoundError):
            await store.changes(LINE, branch="side")

    async def test_checkpoints_without_a_log(self, store: Store) -> None:
        """A conversation with checkpoints alone has its version and no rows."""
        await store.save(LINE, checkpoint(1), expected_version=0)
        assert await store.changes(LINE) == Changes(head_version=1)

    async def test_each_scenario_has_its_own_version(self, store: Store) -> None:
        """The version is that of the line asked for; the rows are the conversation's."""
        await store.append(KEY, said("a"))
        other = msgspec.structs.replace(LINE, scenario="other")
        await store.save(other, checkpoint(1), expected_version=0)
        await store.save(other, checkpoint(2), expected_version=1)
        await store.invalidate(other, 2, "edited")
        assert [(await store.changes(line)).head_version for line in (LINE, other)] == [0, 2]
        assert ids((await store.changes(other)).entries) == ["a"]

    async def test_a_purge_shows(self, store: Store) -> None:
        """After a purge the branch ends before what a reader knew, so a reader that goes on from there can tell."""
        await store.append(KEY, numbered("m", 3))
        await store.purge(KEY)
        assert (await store.changes(LINE, after=3)).position == 0
        await store.append(KEY, said("new"))
        assert (await store.changes(LINE, after=3)).position == 1

    async def test_nothing_shows_under_another_user(self, store: Store) -> None:
        """With the wrong tenant or user there is nothing."""
        await store.append(KEY, said("a"))
        await store.save(LINE, checkpoint(1), expected_version=0)
        for wrong in ({"user": "bob"}, {"tenant": "other"}, {"user": ""}, {"tenant": ""}):
            assert await store.changes(msgspec.structs.replace(LINE, **wrong)) == Changes()
