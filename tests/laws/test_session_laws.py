"""What a session promises of every view, whatever is said, edited, pinned, restarted or failing, in any order."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from tests.laws.session_world import FAILURES, World
from turnfold.stores.memory import MemoryStore
from turnfold.stores.sqlite import SqliteStore

WORDS = st.sampled_from([1, 5, 20, 40, 40, 80, 120])
PICK = st.integers(0, 10_000)


class SessionMachine(RuleBasedStateMachine):
    """Every step that a user, a model, a tool, another process or a failure may take."""

    async def make_store(self) -> Any:
        """Open the store."""
        return await MemoryStore().__aenter__()

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.store = self.runner.run(self.make_store())
        self.world = World(self.store, self.runner.run)

    def teardown(self) -> None:
        """The store is still true of itself at the end."""
        self.world.restart()
        assert self.runner.run(self.store.verify()).problems == ()
        self.runner.run(self.store.__aexit__(None, None, None))
        self.runner.close()

    def _index(self, pick: int) -> int:
        return pick % len(self.world.path)

    @rule(words=WORDS, times=st.integers(1, 4))
    def exchange(self, words: int, times: int) -> None:
        """Ask and answer."""
        for _ in range(times):
            self.world.append(self.world.say("user", words))
            self.world.prepare(lambda session: session.prepare())
            self.world.append(self.world.say("assistant", words, stop_reason="stop"))

    @rule(words=WORDS)
    def user(self, words: int) -> None:
        """Ask, with no answer yet."""
        self.world.append(self.world.say("user", words))

    @rule(words=WORDS, stop=st.sampled_from(["stop", "length", None]))
    def assistant(self, words: int, stop: str | None) -> None:
        """Answer, or be cut off."""
        self.world.append(self.world.say("assistant", words, stop_reason=stop))

    @rule(count=st.integers(1, 3), missing=st.integers(0, 5), words=WORDS)
    def tools(self, count: int, missing: int, words: int) -> None:
        """Call tools in parallel; one of the results may be missing for good."""
        self.world.append(self.world.call(count))
        for number in range(count - (missing == 0)):
            self.world.append(self.world.result(f"c{number}", words))

    @rule(words=WORDS)
    def orphan(self, words: int) -> None:
        """Append a result that nobody asked for, or that comes late."""
        self.world.append(self.world.result("c9", words))

    @rule(words=WORDS)
    def elsewhere(self, words: int) -> None:
        """Another process says something."""
        self.world.append_elsewhere(self.world.say("user", words))

    @precondition(lambda self: self.world.path)
    @rule()
    def prepare(self) -> None:
        """Prepare a request."""
        self.world.prepare(lambda session: session.prepare())

    @precondition(lambda self: self.world.path)
    @rule(during=st.lists(WORDS, max_size=2))
    def compact(self, during: list[int]) -> None:
        """Compact by hand while more is said; the next view has it."""
        world = self.world
        world.during = [world.say("user", words) for words in during]
        said = list(world.during)
        world.prepare(lambda session: session.compact("the tickets"))
        arrived = [message for message in said if message in world.path]
        world.during = []
        following = world.prepare(lambda session: session.prepare())
        if following is not None and following.outcome != "trimmed":
            assert [message.id for message in arrived if message not in following.messages] == []

    @precondition(lambda self: self.world.path)
    @rule(failure=st.sampled_from(FAILURES))
    def compact_in_vain(self, failure: Any) -> None:
        """A summarizer that fails in any way costs nothing but the try."""
        self.world.failing = failure
        self.world.prepare(lambda session: session.compact())
        self.world.failing = None

    @precondition(lambda self: self.world.path)
    @rule()
    def overflow(self) -> None:
        """The provider refuses the request as too large."""
        self.world.prepare(lambda session: session.overflowed())

    @precondition(lambda self: self.world.path)
    @rule(pick=PICK)
    def pin(self, pick: int) -> None:
        """Pin any message of the path."""
        message = self.world.path[self._index(pick)]
        self.runner.run(self.world.session.pin(message.id))
        self.world.pinned.add(message.id)

    @rule()
    def unpin(self) -> None:
        """Unpin everything."""
        self.runner.run(self.world.session.unpin(*self.world.pinned))
        self.world.pinned.clear()

    @precondition(lambda self: self.world.path)
    @rule(pick=PICK)
    def rewind(self, pick: int) -> None:
        """Go back to any message."""
        self.world.rewind(self._index(pick))

    @precondition(lambda self: self.world.path)
    @rule(pick=PICK, words=WORDS)
    def edit(self, pick: int, words: int) -> None:
        """Edit any message."""
        index = self._index(pick)
        role = self.world.path[index].role
        if role != "tool":
            self.world.edit(index, self.world.say(role, words))

    @precondition(lambda self: any(message.role == "user" for message in self.world.path))
    @rule()
    def regenerate(self) -> None:
        """Make the last answer again."""
        self.world.regenerate()

    @rule(pick=PICK)
    def switch(self, pick: int) -> None:
        """Go on in any branch."""
        names = [name for name, path in self.world.paths.items() if path or name != "main"]
        if names:
            self.world.switch(names[pick % len(names)])

    @rule()
    def restart(self) -> None:
        """Start anew."""
        self.world.restart()


class SqliteMachine(SessionMachine):
    """The same on a file."""

    async def make_store(self) -> Any:
        """Open the store."""
        self.folder = tempfile.TemporaryDirectory()
        return await SqliteStore(Path(self.folder.name) / "law.db").__aenter__()

    def teardown(self) -> None:
        """Close and remove the file."""
        super().teardown()
        self.folder.cleanup()


@pytest.mark.parametrize(
    ("machine", "examples", "steps"), [(SessionMachine, 50, 40), (SqliteMachine, 6, 30)], ids=["memory", "sqlite"]
)
def test_every_view_keeps_what_it_must(machine: type[SessionMachine], examples: int, steps: int) -> None:
    """Tool pairs whole, prompt, pins and open turn verbatim, within the budget or an error that says so, nothing uncovered
    missing, the prefix stable, summaries true of their branch, the same after a restart, and taken by every provider.
    """
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=steps))
