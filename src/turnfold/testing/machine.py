"""StoreMachine: a Hypothesis state machine that drives any store beside a model of plain dicts and lists.

The model is as naive as can be: a branch is a list of all rows of its path, a fork copies it. After every step the touched
conversation is compared whole. Needs the package `hypothesis`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from turnfold.core.checkpoint import Checkpoint, CheckpointKey
from turnfold.errors import DuplicateMessageError, NotFoundError, VersionConflict
from turnfold.messages.canonical import chain_of
from turnfold.messages.log import ConversationKey
from turnfold.messages.model import KINDS, Kind, Message, text_message
from turnfold.ports import Store
from turnfold.testing.store_values import checkpoint

T = TypeVar("T")

KEYS = tuple(
    ConversationKey(tenant=tenant, user=user, conversation_id=name)
    for tenant, user, name in (("", "", "c"), ("", "u", "c"), ("", "u", "d"), ("t", "u", "c"))
)
keys = st.sampled_from(KEYS)
picks = st.integers(0, 2**16)
"""Chooses among what there is, by remainder."""
kinds: st.SearchStrategy[Kind] = st.sampled_from((KINDS[0], *KINDS))
texts = st.sampled_from(["", "hello", "你好", "\0", "🗝️", "x" * 5000])
scenarios = st.sampled_from(["session", "other"])


@dataclass
class Row:
    """A row of the model: the message, the branch that owns it and its counts."""

    message: Message
    owner: str
    counts: dict[str, int]


@dataclass
class Model:
    """One conversation: each branch's whole path, its parent and fork, checkpoints with why they are invalid, state."""

    paths: dict[str, list[Row]] = field(default_factory=dict)
    forks: dict[str, tuple[str | None, int]] = field(default_factory=dict)
    lines: dict[str, list[tuple[Checkpoint, str | None]]] = field(default_factory=dict)
    state: dict[str, tuple[int, bytes]] = field(default_factory=dict)

    def rows(self) -> dict[str, Row]:
        """Every row once, by id."""
        return {row.message.id: row for path in self.paths.values() for row in path}


class StoreMachine(RuleBasedStateMachine):
    """Subclass it with `open_store`; the subclass's `TestCase` is the test. `durable` stores are closed and opened again."""

    durable = False

    def open_store(self) -> AbstractAsyncContextManager[Store]:
        """Return the store under test; a durable one must keep what it held within this machine."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[ConversationKey, Model] = {}
        self.named = 0
        self.touched = KEYS[0]
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.store = self.do(self.stack.enter_async_context(self.open_store()))

    def do(self, step: Awaitable[T]) -> T:
        """Run one call of the store."""

        async def awaited() -> T:
            return await step

        return self.runner.run(awaited())

    def teardown(self) -> None:
        """Check the whole store once more and close it."""
        report = self.do(self.store.verify())
        assert report.problems == ()
        assert report.conversations == len(self.model)
        assert report.messages == sum(len(model.rows()) for model in self.model.values())
        self.do(self.stack.aclose())
        self.runner.close()

    def messages(self, drawn: list[tuple[Kind, str]]) -> list[Message]:
        """Return messages with new ids."""
        self.named += len(drawn)
        first = self.named - len(drawn)
        return [
            text_message(f"m{first + number}", "user", text, kind=kind) for number, (kind, text) in enumerate(drawn)
        ]

    def branch_of(self, key: ConversationKey, pick: int) -> str:
        """Choose a branch of a conversation, or the main one that is yet to be."""
        names = list(self.model[key].paths) if key in self.model else []
        return names[pick % len(names)] if names else "main"

    @rule(key=keys, pick=picks, drawn=st.lists(st.tuples(kinds, texts), max_size=4), counted=st.booleans())
    def append(self, key: ConversationKey, pick: int, drawn: list[tuple[Kind, str]], counted: bool) -> None:
        """Append to a branch, at the end that it has."""
        self.touched = key
        branch, messages = self.branch_of(key, pick), self.messages(drawn)
        path = self.model[key].paths.get(branch, []) if key in self.model else []
        counts = {"bpe": range(len(messages))} if counted else None
        entries = self.do(self.store.append(key, messages, branch=branch, counts=counts, expected_position=len(path)))
        assert [entry.message for entry in entries] == messages
        if messages:
            model = self.model.setdefault(key, Model())
            model.forks.setdefault(branch, (None, 0))
            model.paths.setdefault(branch, []).extend(
                Row(message, branch, {"bpe": number} if counted else {}) for number, message in enumerate(messages)
            )

    @rule(key=keys, pick=picks, off=st.sampled_from([-1, 1, 5]))
    def append_elsewhere(self, key: ConversationKey, pick: int, off: int) -> None:
        """Append where the branch does not end."""
        self.touched = key
        branch, messages = self.branch_of(key, pick), self.messages([("message", "late")])
        path = self.model[key].paths.get(branch, []) if key in self.model else []
        self.refused(
            VersionConflict,
            self.store.append(key, messages, branch=branch, expected_position=len(path) + off),
        )

    @precondition(lambda self: any(model.paths for model in self.model.values()))
    @rule(pick=picks, other=picks, before=st.integers(0, 2))
    def append_a_duplicate(self, pick: int, other: int, before: int) -> None:
        """Append an id that the conversation has, after some that it has not."""
        held = [key for key, model in self.model.items() if model.paths]
        self.touched = key = held[pick % len(held)]
        taken = list(self.model[key].rows().values())
        messages = [*self.messages([("message", "new")] * before), taken[pick % len(taken)].message]
        self.refused(DuplicateMessageError, self.store.append(key, messages, branch=self.branch_of(key, other)))

    def refused(self, error: type[Exception], step: Awaitable[object]) -> None:
        """Run a call that must be refused."""
        try:
            self.do(step)
        except error:
            return
        raise AssertionError(f"it was not refused with {error.__name__}")

    @precondition(lambda self: any(model.paths for model in self.model.values()))
    @rule(pick=picks, other=picks, where=picks, taken=st.booleans())
    def fork(self, pick: int, other: int, where: int, taken: bool) -> None:
        """Fork any branch anywhere, under a new name or one that is taken."""
        held = [key for key, model in self.model.items() if model.paths]
        self.touched = key = held[pick % len(held)]
        model, parent = self.model[key], self.branch_of(key, other)
        position = where % (len(model.paths[parent]) + 1)
        if taken:
            name = self.branch_of(key, where)
            self.refused(VersionConflict, self.store.fork(key, name, position=position, branch=parent))
            return
        name = f"b{len(model.paths)}"
        self.do(self.store.fork(key, name, position=position, branch=parent))
        model.paths[name] = model.paths[parent][:position]
        model.forks[name] = (parent, position)

    @rule(key=keys, scenario=scenarios, pick=picks, rows=st.integers(0, 2), off=st.sampled_from([0, 0, 0, -1, 1]))
    def save(self, key: ConversationKey, scenario: str, pick: int, rows: int, off: int) -> None:
        """Save a checkpoint over part of a branch, with rows, expecting the head that is there or another."""
        self.touched = key
        model, branch = self.model.get(key, Model()), self.branch_of(key, pick)
        path = [row.message for row in model.paths.get(branch, [])]
        head = len(model.lines.get(scenario, []))
        saved = checkpoint(head + off + 1, path[: pick % (len(path) + 1)])
        added = self.messages([("summary", "so far")] * rows)
        step = self.store.save(line_of(key, scenario), saved, expected_version=head + off, rows=added, branch=branch)
        if off:
            self.refused(VersionConflict, step)
            return
        assert self.do(step) == head + 1
        self.model[key] = model
        model.lines.setdefault(scenario, []).append((saved, None))
        if rows:
            model.forks.setdefault(branch, (None, 0))
            model.paths.setdefault(branch, []).extend(Row(message, branch, {}) for message in added)

    @rule(key=keys, scenario=scenarios, version=st.integers(0, 3), reason=st.sampled_from(["", "edited"]))
    def invalidate(self, key: ConversationKey, scenario: str, version: int, reason: str) -> None:
        """Invalidate a version, there or not, once or again."""
        self.touched = key
        line = self.model[key].lines.get(scenario, []) if key in self.model else []
        step = self.store.invalidate(line_of(key, scenario), version, reason)
        if not 1 <= version <= len(line):
            self.refused(NotFoundError, step)
            return
        self.do(step)
        saved, before = line[version - 1]
        line[version - 1] = (saved, reason if before is None else before)

    @rule(
        key=keys,
        name=st.sampled_from(["pins", "breakers"]),
        document=st.binary(max_size=4),
        off=st.sampled_from([0, 0, -1, 1]),
    )
    def put_state(self, key: ConversationKey, name: str, document: bytes, off: int) -> None:
        """Store a document, expecting the version that is there or another."""
        self.touched = key
        model = self.model.get(key, Model())
        version, _ = model.state.get(name, (0, b""))
        step = self.store.put_state(key, name, document, expected_version=version + off)
        if off:
            self.refused(VersionConflict, step)
            return
        assert self.do(step) == version + 1
        self.model[key] = model
        model.state[name] = (version + 1, document)

    @rule(key=keys, counter=st.sampled_from(["bpe", "chars4"]), picked=st.lists(picks, max_size=3))
    def save_counts(self, key: ConversationKey, counter: str, picked: list[int]) -> None:
        """Count some of the messages again, and some that are not there."""
        self.touched = key
        rows = self.model[key].rows() if key in self.model else {}
        counts = {f"m{pick % (self.named + 1)}": pick for pick in picked}
        self.do(self.store.save_counts(key, counter, counts))
        for message_id in counts.keys() & rows.keys():
            rows[message_id].counts[counter] = counts[message_id]

    @rule(key=keys, sure=st.sampled_from([False, False, False, True]))
    def purge(self, key: ConversationKey, sure: bool) -> None:
        """Remove a conversation; seldom, so that others grow."""
        if sure:
            self.touched = key
            removed = self.do(self.store.purge(key))
            assert removed == (len(self.model.pop(key).rows()) if key in self.model else 0)

    @precondition(lambda self: self.durable)
    @rule()
    def reopen(self) -> None:
        """Close the store and open it again."""
        self.do(self.stack.aclose())
        self.store = self.do(self.stack.enter_async_context(self.open_store()))

    @rule(key=keys, pick=picks, after=st.integers(-1, 12), limit=st.none() | st.integers(0, 12))
    def read_a_window(self, key: ConversationKey, pick: int, after: int, limit: int | None) -> None:
        """A window of a path is that part of it."""
        if key in self.model and self.model[key].paths:
            branch = self.branch_of(key, pick)
            path = [row.message.id for row in self.model[key].paths[branch]]
            entries = self.do(self.store.read(key, branch=branch, after=after, limit=limit))
            end = len(path) if limit is None else max(after, 0) + limit
            assert [entry.message.id for entry in entries] == path[max(after, 0) : end]

    @rule(tenant=st.sampled_from(["", "t", "none"]), user=st.sampled_from([None, "", "u"]), after=st.none() | keys)
    def list_conversations(self, tenant: str, user: str | None, after: ConversationKey | None) -> None:
        """A listing holds a tenant's conversations, a user's or all, in key order."""
        found = self.do(self.store.conversations(tenant=tenant, user=user, after=after))
        expected = sorted(order(key) for key in self.model if key.tenant == tenant and user in (None, key.user))
        assert [order(info.key) for info in found] == [key for key in expected if after is None or key > order(after)]
        for info in found:
            model = self.model[info.key]
            assert (info.branches, info.rows) == (tuple(model.paths), len(model.rows()))

    @invariant()
    def the_touched_conversation_is_the_models(self) -> None:
        """Branches, paths, numbers, chains, counts, checkpoints and state are the model's."""
        key, model = self.touched, self.model.get(self.touched)
        if model is None or not model.paths:
            self.refused(NotFoundError, self.store.branches(key))
        else:
            branches = self.do(self.store.branches(key))
            assert [branch.name for branch in branches] == list(model.paths)
            for branch in branches:
                assert (branch.parent, branch.fork_position) == model.forks[branch.name]
                self.check_path(key, branch.name, model.paths[branch.name])
        self.check_records(key, model or Model())

    def check_path(self, key: ConversationKey, branch: str, path: list[Row]) -> None:
        """One branch's rows, numbers, chains, counts, and single look-ups."""
        entries = self.do(self.store.read(key, branch=branch))
        rows = [(entry.message, entry.branch, entry.counts) for entry in entries]
        assert rows == [(row.message, row.owner, row.counts) for row in path]
        seq = 0
        for position, entry in enumerate(entries, 1):
            seq += entry.message.kind == "message"
            assert (entry.position, entry.seq) == (position, seq if entry.message.kind == "message" else None)
        assert [entry.chain for entry in entries[-1:]] == [chain_of(row.message for row in path)][: len(entries)]
        head = self.do(self.store.head(key, branch=branch))
        assert (head.position, head.seq) == (len(path), seq)
        for number in {1, seq // 2, seq, seq + 1}:
            expected = next((entry for entry in entries if entry.seq == number), None)
            assert self.do(self.store.at_seq(key, number, branch=branch)) == expected
        changes = self.do(self.store.changes(line_of(key, "session"), branch=branch, after=len(path) // 2))
        assert (changes.position, changes.entries) == (len(path), entries[len(path) // 2 :])
        last = path[-1:]
        assert self.do(self.store.find(key, [row.message.id for row in last])) == entries[-1:]

    def check_records(self, key: ConversationKey, model: Model) -> None:
        """Checkpoints and state."""
        for scenario in ("session", "other"):
            line = model.lines.get(scenario, [])
            assert self.do(self.store.head_version(line_of(key, scenario))) == len(line)
            assert self.do(self.store.changes(line_of(key, scenario))).head_version == len(line)
            records = self.do(self.store.newest(line_of(key, scenario), limit=100))
            assert [(record.checkpoint, record.invalidated) for record in records] == line[::-1]
        for name in ("pins", "breakers"):
            assert self.do(self.store.get_state(key, name)) == model.state.get(name, (0, b""))


def line_of(key: ConversationKey, scenario: str) -> CheckpointKey:
    """Return a conversation's line of checkpoints."""
    return CheckpointKey(tenant=key.tenant, user=key.user, conversation_id=key.conversation_id, scenario=scenario)


def order(key: ConversationKey) -> tuple[str, str, str]:
    """Return a key's place in a listing."""
    return key.tenant, key.user, key.conversation_id
