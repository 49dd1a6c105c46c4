"""Contract tests of `MessageLog` without branches: appending, reading, finding, counts, listings, purging, isolation."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from turnfold.errors import DuplicateMessageError, InputError, NotFoundError, VersionConflict
from turnfold.messages.canonical import GENESIS, chain_of
from turnfold.messages.log import ConversationKey
from turnfold.messages.model import (
    KINDS,
    Image,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    text_message,
)
from turnfold.ports import Store
from turnfold.testing.store_values import KEY, LINE, checkpoint, ids, numbered, said

EVERYTHING = Message(
    id="消息 1",
    role="assistant",
    parts=(
        Text(text='NUL \0, quotes " \\, 汉字, 🗝️, \u2028, \x7f, \ufffe, \U0010ffff'),
        Reasoning(text="hm", payload='{"signature": "=="}', provider="p"),
        ToolCall(id="call\0", name="bash", arguments='{"broken": '),
        ToolResult(
            call_id="call\0",
            content=(Text(text=""), Image(media_type="image/png", data="AA=="), Opaque(source="s", payload="[1]")),
            is_error=True,
            name="bash",
        ),
        Image(url="https://example.org/a.png", detail="low"),
        Opaque(source="s", payload='{"a": 1.0}'),
    ),
    created_at=1_700_000_000_000,
    usage=Usage(input=1, output=2, cache_read=3, cache_write=4, total=10),
    stop_reason="stop",
    model="m",
    metadata={"n": 2**70, "f": 0.1, "none": None, "deep": {"list": [1, "二", {"\0": True}]}},
)


class LogSuite:
    """What every `MessageLog` keeps, on one branch."""

    async def test_append_numbers_and_chains(self, store: Store) -> None:
        """Rows are numbered along the path, messages are numbered and chained; the answer says where each landed."""
        messages = numbered("m", 3)
        entries = await store.append(KEY, messages)
        assert [entry.message for entry in entries] == list(messages)
        assert [(entry.position, entry.seq, entry.branch) for entry in entries] == [(n, n, "main") for n in (1, 2, 3)]
        assert [entry.chain for entry in entries] == [chain_of(messages[:n]) for n in (1, 2, 3)]
        head = await store.head(KEY)
        assert (head.name, head.parent, head.fork_position) == ("main", None, 0)
        assert (head.position, head.seq, head.chain) == (3, 3, chain_of(messages))

    async def test_what_append_answers_is_what_read_gives(self, store: Store) -> None:
        """An entry is the same whether it comes from the append or is read back."""
        first = await store.append(KEY, numbered("a", 2), counts={"bpe": [3, 4]})
        second = await store.append(KEY, said("s", kind="summary"))
        assert await store.read(KEY) == first + second

    async def test_other_kinds_lie_outside_the_chain(self, store: Store) -> None:
        """Summaries, memory updates and reminders take a position, no seq, and leave the chain as it was."""
        await store.append(KEY, said("a"))
        for number, kind in enumerate(KINDS[1:], 2):
            (entry,) = await store.append(KEY, said(f"k{number}", kind=kind))
            assert (entry.position, entry.seq, entry.chain) == (number, None, chain_of(said("a")))
        (entry,) = await store.append(KEY, said("b"))
        assert (entry.position, entry.seq, entry.chain) == (5, 2, chain_of(said("a", "b")))

    async def test_a_row_before_any_message_has_the_empty_chain(self, store: Store) -> None:
        """A conversation may begin with a row outside the chain."""
        (entry,) = await store.append(KEY, said("r", kind="reminder"))
        assert (entry.position, entry.seq, entry.chain) == (1, None, GENESIS)
        assert (await store.head(KEY)).seq == 0

    async def test_every_part_comes_back_equal(self, store: Store) -> None:
        """Every part, NUL characters, broken JSON of a model, any script and number come back as they were given."""
        await store.append(KEY, (EVERYTHING,))
        (entry,) = await store.read(KEY)
        assert entry.message == EVERYTHING
        assert await store.find(KEY, [EVERYTHING.id]) == (entry,)

    async def test_a_huge_message_comes_back_equal(self, store: Store) -> None:
        """Millions of characters are one message like any other."""
        huge = text_message("huge", "tool", "0123456789汉" * 200_000)
        await store.append(KEY, (huge, *said("next")))
        assert [entry.message for entry in await store.read(KEY)] == [huge, *said("next")]

    @pytest.mark.parametrize(
        "broken",
        [
            Message(id="bad", role="user", parts=(Text(text="half a pair \ud83d"),)),
            Message(id="bad", role="user", metadata={"n": float("nan")}),
            Message(id="bad", role="user", metadata={"pair": (1, 2)}),
            Message(id="bad", role="user", metadata={"object": object()}),
            Message(id="bad", role="user", created_at=1.5),  # type: ignore[arg-type]
        ],
        ids=["lone surrogate", "NaN", "tuple", "no JSON", "wrong type"],
    )
    async def test_what_would_not_come_back_is_refused(self, store: Store, broken: Message) -> None:
        """A message that could not be read back as it is, is refused by its id, with everything in the same append."""
        with pytest.raises(InputError, match="'bad'"):
            await store.append(KEY, (*said("good"), broken))
        with pytest.raises(NotFoundError):
            await store.read(KEY)
        await store.append(KEY, said("good"))

    async def test_names_that_are_no_text_are_refused(self, store: Store) -> None:
        """A key, branch, counter or id with half a surrogate pair is one clear error."""
        half = "\ud800"
        await store.append(KEY, said("a"))
        with pytest.raises(InputError):
            await store.append(KEY, said(half))
        with pytest.raises(InputError):
            await store.append(KEY, said("b"), counts={half: [1]})
        with pytest.raises(InputError):
            await store.append(ConversationKey(conversation_id=half), said("b"))
        with pytest.raises(InputError):
            await store.fork(KEY, half, position=0)
        with pytest.raises(InputError):
            await store.save_counts(KEY, half, {"a": 1})
        with pytest.raises(InputError):
            await store.put_state(KEY, half, b"", expected_version=0)
        assert ids(await store.read(KEY)) == ["a"]

    async def test_names_may_hold_any_text(self, store: Store) -> None:
        """Empty strings, NUL characters, separators and any script are names like others, and differ from one another."""
        names = ["", "\0", "a\0b", "a", "a/b", "用户", "'; DROP TABLE messages; --", "%", "A"]
        keys = [
            ConversationKey(tenant=name, user=user, conversation_id=name) for name in names for user in ("", "u\0", "u")
        ]
        for number, key in enumerate(keys):
            await store.append(key, said(f"m{number}"))
        assert [ids(await store.read(key)) for key in keys] == [[f"m{number}"] for number in range(len(keys))]

    async def test_a_duplicate_id_writes_nothing(self, store: Store) -> None:
        """An id that the conversation has, or twice in one append, is refused by name; nothing of the append stays."""
        await store.append(KEY, said("a", "b"))
        for batch, duplicate in ((said("c", "b", "a"), "b"), (said("c", "d", "c"), "c")):
            with pytest.raises(DuplicateMessageError) as caught:
                await store.append(KEY, batch)
            assert caught.value.message_id == duplicate
        assert ids(await store.read(KEY)) == ["a", "b"]
        assert (await store.append(KEY, said("c")))[0].position == 3

    async def test_ids_are_unique_in_their_conversation_only(self, store: Store) -> None:
        """Another conversation may hold the same ids."""
        other = msgspec.structs.replace(KEY, conversation_id="c2")
        await store.append(KEY, said("a"))
        await store.append(other, said("a"))
        assert (await store.verify()).problems == ()

    async def test_expected_position_is_compared(self, store: Store) -> None:
        """An append that expects another end is refused and writes nothing; a new conversation ends at 0."""
        with pytest.raises(VersionConflict):
            await store.append(KEY, said("a"), expected_position=1)
        await store.append(KEY, said("a"), expected_position=0)
        for wrong in (0, 2):
            with pytest.raises(VersionConflict) as caught:
                await store.append(KEY, said("b"), expected_position=wrong)
            assert (caught.value.expected, caught.value.actual) == (wrong, 1)
        await store.append(KEY, said("b"), expected_position=1)
        assert ids(await store.read(KEY)) == ["a", "b"]

    async def test_appending_nothing_writes_nothing(self, store: Store) -> None:
        """An empty append makes no conversation; it still compares the position."""
        assert await store.append(KEY, ()) == ()
        assert await store.append(KEY, (), expected_position=0) == ()
        with pytest.raises(NotFoundError):
            await store.head(KEY)
        await store.append(KEY, said("a"))
        with pytest.raises(VersionConflict):
            await store.append(KEY, (), expected_position=0)
        with pytest.raises(NotFoundError):
            await store.append(KEY, (), branch="none")

    async def test_append_to_a_branch_that_is_not_there(self, store: Store) -> None:
        """Only the main branch comes to be by an append."""
        with pytest.raises(NotFoundError):
            await store.append(KEY, said("a"), branch="side")
        await store.append(KEY, said("a"))
        with pytest.raises(NotFoundError):
            await store.append(KEY, said("b"), branch="side")

    @pytest.mark.parametrize(
        ("after", "limit", "expected"),
        [
            (0, None, [1, 2, 3, 4, 5]),
            (2, None, [3, 4, 5]),
            (2, 2, [3, 4]),
            (0, 0, []),
            (5, None, []),
            (9, 3, []),
            (-3, 2, [1, 2]),
            (10**30, 10**30, []),
            (4, 10**30, [5]),
        ],
    )
    async def test_read_windows(self, store: Store, after: int, limit: int | None, expected: Sequence[int]) -> None:
        """`after` and `limit` cut the path anywhere, beyond its ends too."""
        await store.append(KEY, numbered("m", 5))
        assert ids(await store.read(KEY, after=after, limit=limit)) == [f"m{number}" for number in expected]

    async def test_a_negative_limit_is_refused(self, store: Store) -> None:
        """A limit below 0 means nothing, so it is an error, not everything."""
        await store.append(KEY, said("a"))
        with pytest.raises(InputError):
            await store.read(KEY, limit=-1)
        with pytest.raises(InputError):
            await store.conversations(limit=-1)
        with pytest.raises(InputError):
            await store.newest(LINE, limit=-1)

    async def test_what_is_not_there(self, store: Store) -> None:
        """Reading a conversation or branch that is not there is NotFoundError; finding ids gives nothing."""
        for call in (store.read(KEY), store.head(KEY), store.branches(KEY), store.at_seq(KEY, 1), store.verify(KEY)):
            with pytest.raises(NotFoundError):
                await call
        assert await store.find(KEY, ["a"]) == ()
        await store.append(KEY, said("a"))
        for call in (
            store.read(KEY, branch="no"),
            store.head(KEY, branch="no"),
            store.at_seq(KEY, 1, branch="no"),
        ):
            with pytest.raises(NotFoundError):
                await call

    async def test_at_seq_counts_messages_only(self, store: Store) -> None:
        """Message n is found whatever rows outside the chain lie before it."""
        await store.append(KEY, said("r1", "r2", kind="reminder"))
        await store.append(KEY, said("a", "b"))
        await store.append(KEY, said("s", kind="summary"))
        await store.append(KEY, said("c"))
        await store.append(KEY, said("t", kind="summary"))
        found = [await store.at_seq(KEY, seq) for seq in range(-1, 5)]
        assert [entry.message.id if entry else None for entry in found] == [None, None, "a", "b", "c", None]
        assert await store.at_seq(KEY, 10**30) is None

    async def test_find_keeps_the_order_asked(self, store: Store) -> None:
        """Rows come in the order of the ids asked, twice if asked twice, and unknown ids are left out."""
        await store.append(KEY, numbered("m", 3))
        assert ids(await store.find(KEY, ["m3", "none", "m1", "m3"])) == ["m3", "m1", "m3"]
        assert ids(await store.find(KEY, iter(["m2"]))) == ["m2"]

    async def test_counts_are_stored_by_counter(self, store: Store) -> None:
        """Tokens come with the rows under their counter's name; a later count replaces its own and no other."""
        await store.append(KEY, said("a", "b"), counts={"bpe": [3, 4], "chars4": [5, 6]})
        await store.save_counts(KEY, "bpe", {"a": 30, "none": 1})
        await store.save_counts(KEY, 'new "counter" \0 $.x', {"b": 7})
        entries = await store.read(KEY)
        assert [entry.counts for entry in entries] == [
            {"bpe": 30, "chars4": 5},
            {"bpe": 4, "chars4": 6, 'new "counter" \0 $.x': 7},
        ]
        assert (await store.verify()).problems == ()

    async def test_counts_of_what_is_not_there(self, store: Store) -> None:
        """Counts for an unknown conversation make none."""
        await store.save_counts(KEY, "bpe", {"a": 1})
        assert await store.conversations(tenant=KEY.tenant) == ()

    async def test_counts_must_be_one_for_each(self, store: Store) -> None:
        """A wrong number of counts is refused and nothing is written."""
        with pytest.raises(InputError, match="bpe"):
            await store.append(KEY, said("a", "b"), counts={"bpe": [1]})
        with pytest.raises(NotFoundError):
            await store.head(KEY)

    async def test_what_was_given_cannot_be_changed_afterwards(self, store: Store) -> None:
        """A caller that changes its own values, or what it read, changes nothing that is stored."""
        metadata = {"list": [1]}
        counts = {"bpe": [1]}
        entries = await store.append(KEY, (Message(id="a", role="user", metadata=metadata),), counts=counts)
        metadata["list"].append(2)
        counts["bpe"][0] = 9
        entries[0].counts["bpe"] = 9
        (entry,) = await store.read(KEY)
        assert (entry.message.metadata, entry.counts) == ({"list": [1]}, {"bpe": 1})
        entry.message.metadata["list"].append(3)
        assert (await store.read(KEY))[0].message.metadata == {"list": [1]}


class ListingSuite:
    """What every `MessageLog` keeps across conversations: listings, isolation, purging and verifying."""

    async def test_listing_in_key_order_by_pages(self, store: Store) -> None:
        """A tenant's conversations come in key order, user first, page by page, none twice and none left out."""
        names = ["", "a", "a\0", "ab", "b", "é", "会", "🗝️"]
        keys = [ConversationKey(tenant="t", user=user, conversation_id=name) for user in names for name in names]
        for number, key in enumerate(reversed(keys)):
            await store.append(key, said(f"m{number}"))
        await store.append(ConversationKey(tenant="t2", user="a", conversation_id="a"), said("other"))
        listed: list[ConversationKey] = []
        while page := await store.conversations(tenant="t", after=listed[-1] if listed else None, limit=7):
            listed += [info.key for info in page]
        assert listed == keys

    async def test_listing_one_user(self, store: Store) -> None:
        """A user's listing holds that user's conversations only, and goes on from a key of any user."""
        for user in ("a", "b", "c"):
            for name in ("1", "2"):
                await store.append(ConversationKey(tenant="t", user=user, conversation_id=name), said("m"))

        async def listed(after: tuple[str, str, str] | None) -> list[tuple[str, str]]:
            key = ConversationKey(tenant=after[0], user=after[1], conversation_id=after[2]) if after else None
            page = await store.conversations(tenant="t", user="b", after=key)
            return [(info.key.user, info.key.conversation_id) for info in page]

        both = [("b", "1"), ("b", "2")]
        assert await listed(None) == both
        assert await listed(("t", "b", "1")) == [("b", "2")]
        assert await listed(("t", "a", "9")) == both
        assert await listed(("t", "c", "1")) == []
        assert await listed(("s", "z", "9")) == both
        assert await listed(("u", "", "")) == []

    async def test_listing_says_what_is_there(self, store: Store) -> None:
        """A listing shows branches and the rows over all of them, shared rows once; checkpoints alone are listed too."""
        await store.append(KEY, numbered("m", 3))
        await store.fork(KEY, "side", position=2)
        await store.append(KEY, said("x"), branch="side")
        only = msgspec.structs.replace(LINE, conversation_id="stateless")
        await store.save(only, checkpoint(1), expected_version=0)
        first, second = await store.conversations(tenant="acme")
        assert (first.key, first.branches, first.rows) == (KEY, ("main", "side"), 4)
        assert (second.key.conversation_id, second.branches, second.rows) == ("stateless", (), 0)
        assert min(first.updated_at, second.updated_at) > 0

    async def test_listing_limits(self, store: Store) -> None:
        """A limit of 0 lists nothing, a huge one everything."""
        await store.append(KEY, said("a"))
        assert await store.conversations(tenant="acme", limit=0) == ()
        assert len(await store.conversations(tenant="acme", limit=10**30)) == 1

    async def test_nothing_is_reachable_under_another_user(self, store: Store) -> None:
        """With the wrong tenant or user nothing can be read, found, listed, changed or removed."""
        await store.append(KEY, said("a"))
        await store.save(LINE, checkpoint(1), expected_version=0)
        await store.put_state(KEY, "pins", b"[]", expected_version=0)
        for wrong in ({"user": "bob"}, {"tenant": "other"}, {"user": ""}, {"tenant": ""}):
            key, line = msgspec.structs.replace(KEY, **wrong), msgspec.structs.replace(LINE, **wrong)
            for call in (store.read(key), store.head(key), store.fork(key, "f", position=0), store.load(line, 1)):
                with pytest.raises(NotFoundError):
                    await call
            assert await store.find(key, ["a"]) == ()
            assert await store.newest(line) == ()
            assert await store.head_version(line) == 0
            assert await store.get_state(key, "pins") == (0, b"")
            assert await store.purge(key) == 0
            with pytest.raises(NotFoundError):
                await store.invalidate(line, 1, "x")
            assert KEY not in [info.key for info in await store.conversations(tenant=key.tenant, user=key.user)]
        assert ids(await store.read(KEY)) == ["a"]

    async def test_purge_removes_everything_of_one_conversation(self, store: Store) -> None:
        """After a purge the conversation was never there, its neighbors are whole, and it may begin anew."""
        other = msgspec.structs.replace(KEY, conversation_id="c2")
        for key in (KEY, other):
            await store.append(key, numbered("m", 3))
            await store.fork(key, "side", position=1)
            await store.append(key, said("x"), branch="side")
            await store.put_state(key, "pins", b"[]", expected_version=0)
        await store.save(LINE, checkpoint(1), expected_version=0, rows=said("s", kind="summary"))
        assert await store.purge(KEY) == 5
        assert await store.purge(KEY) == 0
        for call in (store.read(KEY), store.branches(KEY), store.load(LINE, 1)):
            with pytest.raises(NotFoundError):
                await call
        assert await store.get_state(KEY, "pins") == (0, b"")
        assert await store.head_version(LINE) == 0
        assert [info.key for info in await store.conversations(tenant="acme")] == [other]
        assert ids(await store.read(other, branch="side")) == ["m1", "x"]
        assert (await store.append(KEY, said("m1")))[0].position == 1
        assert (await store.verify()).problems == ()

    async def test_verify_counts_what_it_read(self, store: Store) -> None:
        """A sound store has no problems; the report says how much was checked, of one conversation or all."""
        other = msgspec.structs.replace(KEY, user="bob")
        messages = numbered("m", 3)
        await store.append(KEY, messages)
        await store.append(KEY, said("r", kind="reminder"))
        await store.fork(KEY, "side", position=2)
        await store.append(KEY, said("x"), branch="side")
        await store.save(LINE, checkpoint(1, messages[:2]), expected_version=0, rows=said("s", kind="summary"))
        await store.append(other, said("a"))
        report = await store.verify()
        assert (report.conversations, report.messages, report.checkpoints, report.problems) == (2, 7, 1, ())
        report = await store.verify(other)
        assert (report.conversations, report.messages, report.checkpoints, report.problems) == (1, 1, 0, ())

    async def test_verify_compares_coverage_with_the_log(self, store: Store) -> None:
        """A checkpoint whose coverage is not the log's is a problem, unless it is invalidated or not of this log."""
        messages = numbered("m", 3)
        await store.append(KEY, messages)
        edited = (text_message("m1", "user", "edited"), *messages[1:])
        await store.save(LINE, checkpoint(1, edited), expected_version=0)
        await store.save(LINE, checkpoint(2, said("elsewhere")), expected_version=1)
        (problem,) = (await store.verify()).problems
        assert "version 1" in problem
        assert str(LINE) in problem
        await store.invalidate(LINE, 1, "history_changed")
        assert (await store.verify()).problems == ()
