"""Contract tests of `CheckpointStore` and `StateStore`: versions, compare-and-swap, invalidation, rows in one transaction."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from turnfold.core.checkpoint import FORMAT_VERSION, Audit, Mask, Retention
from turnfold.errors import DuplicateMessageError, InputError, NotFoundError, VersionConflict
from turnfold.messages.canonical import chain_of
from turnfold.messages.model import Usage
from turnfold.ports import Store
from turnfold.testing.store_values import KEY, LINE, checkpoint, ids, numbered, said


class CheckpointSuite:
    """What every `CheckpointStore` keeps."""

    async def test_a_checkpoint_comes_back_equal(self, store: Store) -> None:
        """Every field of a checkpoint comes back as it was saved."""
        saved = msgspec.structs.replace(
            checkpoint(1, numbered("m", 70), summary="摘要 \0 🗝️"),
            structured={"a": [1, None, {"二": 0.5}]},
            masks=(Mask(message_id="m", call_id="c", placeholder="[gone]"),),
            pins=("m1", "m2"),
            open_request_id="m3",
            folded=("m4",),
            audit=Audit(
                trigger="overflow",
                mode="sliding_window",
                usage=Usage(input=1),
                retention=Retention(identifiers_found=2, omitted=("x",)),
                not_shown=("y",),
            ),
        )
        assert await store.save(LINE, saved, expected_version=0) == 1
        record = await store.load(LINE, 1)
        assert (record.version, record.format, record.invalidated) == (1, FORMAT_VERSION, None)
        assert record.checkpoint == saved

    async def test_versions_count_up_and_are_all_kept(self, store: Store) -> None:
        """Versions are 1, 2, 3... and every one stays as it was saved."""
        assert await store.head_version(LINE) == 0
        for version in (1, 2, 3):
            saved = await store.save(
                LINE, checkpoint(version, summary=f"summary {version}"), expected_version=version - 1
            )
            assert saved == version == await store.head_version(LINE)
        summaries = [(await store.load(LINE, version)).checkpoint for version in (1, 2, 3)]
        assert [each.summary for each in summaries if each] == ["summary 1", "summary 2", "summary 3"]

    async def test_a_loser_writes_nothing(self, store: Store) -> None:
        """A save that expects another head is refused, says which head there is, and leaves nothing behind."""
        await store.append(KEY, said("a"))
        await store.save(LINE, checkpoint(1), expected_version=0)
        for expected in (0, 2):
            with pytest.raises(VersionConflict) as caught:
                await store.save(
                    LINE,
                    checkpoint(expected + 1, summary="late"),
                    expected_version=expected,
                    rows=said("s", kind="summary"),
                )
            assert (caught.value.expected, caught.value.actual) == (expected, 1)
        assert await store.head_version(LINE) == 1
        assert ids(await store.read(KEY)) == ["a"]
        first = (await store.load(LINE, 1)).checkpoint
        assert first is not None
        assert first.summary == "a summary"

    async def test_of_racing_savers_one_wins(self, store: Store) -> None:
        """Savers that expect the same head: one is stored, all others are told."""
        saves = [store.save(LINE, checkpoint(1, summary=f"by {n}"), expected_version=0) for n in range(8)]
        answers = await asyncio.gather(*saves, return_exceptions=True)
        assert sorted(type(answer).__name__ for answer in answers) == ["VersionConflict"] * 7 + ["int"]
        winner = (await store.load(LINE, 1)).checkpoint
        assert winner is not None
        assert winner.summary == f"by {[type(answer) for answer in answers].index(int)}"

    async def test_the_version_must_be_the_next(self, store: Store) -> None:
        """A checkpoint numbered other than `expected_version + 1` is a mistake of the caller."""
        for version in (0, 1, 3):
            with pytest.raises(InputError):
                await store.save(LINE, checkpoint(version), expected_version=1)
        assert await store.head_version(LINE) == 0

    async def test_rows_are_appended_with_the_checkpoint(self, store: Store) -> None:
        """The summary's row lands on the branch in the same transaction, outside the chain."""
        await store.append(KEY, numbered("m", 2))
        await store.fork(KEY, "side", position=1)
        await store.save(LINE, checkpoint(1), expected_version=0, rows=said("s1", "s2", kind="summary"), branch="side")
        entries = await store.read(KEY, branch="side")
        assert [(entry.message.id, entry.position, entry.seq) for entry in entries] == [
            ("m1", 1, 1),
            ("s1", 2, None),
            ("s2", 3, None),
        ]
        assert entries[-1].chain == chain_of(said("m1"))
        assert (await store.head(KEY, branch="side")).position == 3
        assert (await store.head(KEY)).position == 2

    async def test_rows_and_checkpoint_are_all_or_nothing(self, store: Store) -> None:
        """Rows that cannot be appended keep the checkpoint out too."""
        await store.append(KEY, said("a"))
        with pytest.raises(DuplicateMessageError):
            await store.save(LINE, checkpoint(1), expected_version=0, rows=said("s", "a", kind="summary"))
        with pytest.raises(NotFoundError):
            await store.save(LINE, checkpoint(1), expected_version=0, rows=said("s", kind="summary"), branch="no")
        with pytest.raises(InputError):
            await store.save(LINE, checkpoint(1), expected_version=0, rows=said("s"))
        assert await store.head_version(LINE) == 0
        assert ids(await store.read(KEY)) == ["a"]
        assert await store.save(LINE, checkpoint(1), expected_version=0, rows=said("s", kind="summary")) == 1

    async def test_a_checkpoint_without_a_log(self, store: Store) -> None:
        """A history that requests carry has checkpoints and no messages; its log can begin later."""
        await store.save(LINE, checkpoint(1), expected_version=0)
        for call in (store.read(KEY), store.head(KEY), store.branches(KEY)):
            with pytest.raises(NotFoundError):
                await call
        assert (await store.verify()).checkpoints == 1
        await store.append(KEY, said("a"), expected_position=0)
        assert ids(await store.read(KEY)) == ["a"]

    async def test_rows_begin_the_main_branch(self, store: Store) -> None:
        """Rows saved before any message make the main branch, as an append would."""
        await store.save(LINE, checkpoint(1), expected_version=0, rows=said("s", kind="summary"))
        assert [(entry.message.id, entry.position, entry.seq) for entry in await store.read(KEY)] == [("s", 1, None)]

    async def test_lines_are_separate(self, store: Store) -> None:
        """Each scenario of a conversation has its own versions."""
        other = msgspec.structs.replace(LINE, scenario="")
        await store.save(LINE, checkpoint(1), expected_version=0)
        assert await store.head_version(other) == 0
        await store.save(other, checkpoint(1, summary="other"), expected_version=0)
        await store.save(other, checkpoint(2, summary="other"), expected_version=1)
        assert [await store.head_version(line) for line in (LINE, other)] == [1, 2]

    async def test_newest_first_from_below(self, store: Store) -> None:
        """Versions come newest first, at most as many as asked, from below a version."""
        for version in range(1, 6):
            await store.save(LINE, checkpoint(version), expected_version=version - 1)

        async def versions(before: int | None = None, limit: int = 8) -> list[int]:
            return [record.version for record in await store.newest(LINE, before=before, limit=limit)]

        assert await versions() == [5, 4, 3, 2, 1]
        assert await versions(limit=2) == [5, 4]
        assert await versions(before=4, limit=2) == [3, 2]
        assert await versions(before=10**30, limit=10**30) == [5, 4, 3, 2, 1]
        assert await versions(before=1) == await versions(before=-5) == await versions(limit=0) == []
        assert await store.newest(msgspec.structs.replace(LINE, scenario="none")) == ()

    async def test_invalidating_again_changes_nothing(self, store: Store) -> None:
        """A version is marked once, with the first reason; the head's number and the other versions stay."""
        for version in (1, 2):
            await store.save(LINE, checkpoint(version), expected_version=version - 1)
        for reason in ("history_changed", "another"):
            await store.invalidate(LINE, 2, reason)
        records = await store.newest(LINE)
        assert [(record.version, record.invalidated) for record in records] == [(2, "history_changed"), (1, None)]
        assert records[0].checkpoint is not None
        assert await store.head_version(LINE) == 2
        await store.save(LINE, checkpoint(3), expected_version=2)
        assert (await store.load(LINE, 2)).invalidated == "history_changed"

    async def test_a_version_that_is_not_there(self, store: Store) -> None:
        """Loading or invalidating it is NotFoundError, with or without the conversation."""
        for version in (1, 0, -1, 10**30):
            for call in (store.load(LINE, version), store.invalidate(LINE, version, "x")):
                with pytest.raises(NotFoundError):
                    await call
        await store.save(LINE, checkpoint(1), expected_version=0)
        for version in (2, 0, -1, 10**30):
            for call in (store.load(LINE, version), store.invalidate(LINE, version, "x")):
                with pytest.raises(NotFoundError):
                    await call

    async def test_an_unknown_format_is_handed_back_unread(self, store: Store) -> None:
        """A checkpoint of a newer release is a record that says so; it counts as a version like any other."""
        newer = msgspec.structs.replace(checkpoint(1), format=FORMAT_VERSION + 1)
        await store.save(LINE, newer, expected_version=0)
        record = await store.load(LINE, 1)
        assert (record.version, record.format, record.checkpoint) == (1, FORMAT_VERSION + 1, None)
        assert await store.newest(LINE) == (record,)
        assert await store.head_version(LINE) == 1
        assert (await store.verify()).problems == ()

    async def test_a_checkpoint_that_would_not_come_back_is_refused(self, store: Store) -> None:
        """Text or values that JSON would change are one clear error, and nothing is written."""
        for broken in (
            checkpoint(1, summary="half a pair \udc00"),
            msgspec.structs.replace(checkpoint(1), structured={"n": float("inf")}),
        ):
            with pytest.raises(InputError):
                await store.save(LINE, broken, expected_version=0)
        assert await store.head_version(LINE) == 0


class StateSuite:
    """What every `StateStore` keeps."""

    async def test_a_document_that_is_not_there(self, store: Store) -> None:
        """Version 0 and no bytes, whether or not the conversation is there."""
        assert await store.get_state(KEY, "pins") == (0, b"")
        await store.append(KEY, said("a"))
        assert await store.get_state(KEY, "pins") == (0, b"")

    async def test_documents_are_compared_and_swapped(self, store: Store) -> None:
        """Each document has its own version; a writer that expects another is refused and changes nothing."""
        assert await store.put_state(KEY, "pins", b"\x00\xff", expected_version=0) == 1
        assert await store.put_state(KEY, "pins", b"", expected_version=1) == 2
        assert await store.get_state(KEY, "pins") == (2, b"")
        assert await store.put_state(KEY, "breakers", b"{}", expected_version=0) == 1
        for expected in (0, 1, 3):
            with pytest.raises(VersionConflict) as caught:
                await store.put_state(KEY, "pins", b"late", expected_version=expected)
            assert (caught.value.expected, caught.value.actual) == (expected, 2)
        assert await store.get_state(KEY, "pins") == (2, b"")

    async def test_a_refused_document_makes_no_conversation(self, store: Store) -> None:
        """A conflict on a conversation that is not there leaves it not there."""
        with pytest.raises(VersionConflict):
            await store.put_state(KEY, "pins", b"x", expected_version=1)
        assert await store.conversations(tenant=KEY.tenant) == ()

    async def test_of_racing_writers_one_wins(self, store: Store) -> None:
        """Writers that expect the same version: one is stored, all others are told."""
        puts = [store.put_state(KEY, "pins", b"%d" % n, expected_version=0) for n in range(8)]
        answers = await asyncio.gather(*puts, return_exceptions=True)
        winner = [type(answer) for answer in answers].index(int)
        assert sum(isinstance(answer, VersionConflict) for answer in answers) == 7
        assert await store.get_state(KEY, "pins") == (1, b"%d" % winner)
