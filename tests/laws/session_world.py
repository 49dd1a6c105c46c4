"""A session driven step by step next to what it ought to be: every path as plain lists, and the views sent so far.

Each step is a plain function, so that Hypothesis can put them in any order; `World.prepare` checks every promise about a view.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from turnfold.config.settings import Settings
from turnfold.core.checkpoint import Checkpoint
from turnfold.core.groups import is_final, pair_tools
from turnfold.core.plan import SummaryDraft, SummaryRequest
from turnfold.core.reasons import Reason
from turnfold.errors import ContextOverflowError, StillTooLargeError, SummaryError
from turnfold.messages.canonical import chain_of, js_json
from turnfold.messages.log import MAIN, ConversationKey
from turnfold.messages.model import Message, Text, ToolCall, ToolResult, text_message
from turnfold.ports import Store
from turnfold.runtime.decision import Prepared
from turnfold.session import Session
from turnfold.summarizers.extractive import ExtractiveSummarizer
from turnfold.summarizers.scripted import ScriptedSummarizer
from turnfold.transcripts import anthropic, openai_chat, openai_responses
from turnfold.transcripts.validity import CHECKS
from turnfold.wiring import make_compactor, new_id

T = TypeVar("T")

KEY = ConversationKey(tenant="t", user="u", conversation_id="law")
SYSTEM = "You keep an orderly log. Answer in one line."
SETTINGS = Settings(context_window=1_000, counter="chars4", output_reserve=0, safety_margin=0)
"""Triggers at 800 tokens."""

REPAIRS = frozenset({"orphan_result", "orphan_call", "late_result"})
FAILURES = ("", "   \n", "I cannot help with that.", SummaryError("nothing came"), RuntimeError("broken"), "x" * 40_000)


class World:
    """One conversation, and what is known of it from outside."""

    def __init__(self, store: Store, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self.store, self.run = store, run
        self.paths: dict[str, list[Message]] = {MAIN: []}
        self.checkpoints: list[Checkpoint] = []
        self.number = 0
        self.during: list[Message] = []
        self.failing: Any = None
        self.sent: Prepared | None = None
        self.pinned: set[str] = set()
        self.session = self._opened()

    # -- the session -------------------------------------------------------------------------------------------------

    def _opened(self) -> Session:
        compactor = make_compactor(SETTINGS, using=ScriptedSummarizer(self._answer, name="law"))
        budget = SETTINGS.budget(exact=compactor.counter.exact)
        session = Session(self.store, KEY, compactor, budget=budget, new_id=new_id, system=SYSTEM)
        self.run(session.__aenter__())
        return session

    async def _answer(self, request: SummaryRequest) -> str | SummaryDraft | BaseException:
        """Summarize, while others go on talking; or fail in the way that is set."""
        for message in self.during:
            await self.session.append(message)
            self.path.append(message)
        self.during = []
        if self.failing is not None:
            return self.failing  # type: ignore[no-any-return]
        counter = self.session.compactor.counter
        return await ExtractiveSummarizer(counter.count_text).summarize(request, None)  # type: ignore[arg-type]

    @property
    def path(self) -> list[Message]:
        """The messages of the branch in use."""
        return self.paths[self.session.branch]

    def restart(self) -> None:
        """Open the conversation anew. What is in view is the same, byte for byte."""
        branch, before = self.session.branch, self.run(self.session.view())
        self.session = self._opened()
        after = self.run(self.session.view())
        assert self.session.branch == branch
        assert after.messages == before.messages
        assert after.tokens == before.tokens

    # -- talking -----------------------------------------------------------------------------------------------------

    def text(self, words: int) -> str:
        """A text that names itself."""
        self.number += 1
        return f"[{self.number}] " + "word " * words

    def say(self, role: Any, words: int, *, stop_reason: str | None = None) -> Message:
        """Make a message that is to be appended."""
        text = self.text(words)
        return Message(id=f"m{self.number}", role=role, parts=(Text(text=text),), stop_reason=stop_reason)

    def call(self, count: int) -> Message:
        """Make an assistant's message with parallel calls."""
        text = self.text(2)
        calls = tuple(ToolCall(id=f"c{n}", name="bash", arguments='{"cmd": "ls"}') for n in range(count))
        return Message(id=f"m{self.number}", role="assistant", parts=(Text(text=text), *calls))

    def result(self, call_id: str, words: int) -> Message:
        """Make a tool's answer."""
        text = self.text(words)
        return Message(
            id=f"m{self.number}", role="tool", parts=(ToolResult(call_id=call_id, content=(Text(text=text),)),)
        )

    def append(self, *messages: Message) -> None:
        """Append to the branch in use."""
        self.run(self.session.append(*messages))
        self.path.extend(messages)

    def append_elsewhere(self, message: Message) -> None:
        """Append through another session of the same conversation, as another process would."""
        other = self._opened()
        self.run(other.append(message))
        self.path.append(message)

    # -- branches ----------------------------------------------------------------------------------------------------

    def _moved(self, path: list[Message]) -> None:
        """Take note of a new branch in use; its checkpoint must be the newest that is wholly inside it."""
        self.paths[self.session.branch] = path
        self.sent = None
        self.check_checkpoint()

    def rewind(self, index: int) -> None:
        """Go on from a message."""
        path = self.path[: index + 1]
        self.run(self.session.rewind(path[-1].id))
        self._moved(path)

    def edit(self, index: int, replacement: Message) -> None:
        """Put a message in another's place."""
        path = [*self.path[:index], replacement]
        self.run(self.session.edit(self.path[index].id, replacement))
        self._moved(path)

    def regenerate(self) -> None:
        """Go on from the latest user message."""
        last = max(index for index, message in enumerate(self.path) if message.role == "user")
        path = self.path[: last + 1]
        self.run(self.session.regenerate())
        self._moved(path)

    def switch(self, name: str) -> None:
        """Go on in a branch that is there."""
        self.run(self.session.switch(name))
        self._moved(self.paths[name])

    def check_checkpoint(self) -> None:
        """The checkpoint in use is the newest one whose coverage is a prefix of the path, none when there is none."""
        inside = [
            checkpoint.version
            for checkpoint in self.checkpoints
            if checkpoint.coverage is None
            or chain_of(self.path[: checkpoint.coverage.count]) == checkpoint.coverage.chain
        ]
        checkpoint = self.session.checkpoint
        assert (checkpoint.version if checkpoint else None) == max(inside, default=None)

    # -- requests ----------------------------------------------------------------------------------------------------

    def prepare(self, how: Callable[[Session], Coroutine[Any, Any, Prepared]]) -> Prepared | None:
        """Prepare a request and hold every promise against it; None when it was refused as too large, rightly."""
        pins_before = {row.id for row in self.sent.messages} & self.pinned if self.sent else set()
        at_start, covered = list(self.path), self._covered()
        try:
            prepared: Prepared = self.run(how(self.session))
        except StillTooLargeError:
            self.sent = None
            return None
        except ContextOverflowError as error:
            too_large, self.sent = error.tokens > error.input_budget, None
            assert too_large, str(error)  # noqa: PT017 - the step goes on
            return None
        self._note_checkpoint(prepared)
        self.check_checkpoint()
        self._check_size(prepared)
        self._check_request(prepared, at_start, covered)
        self._check_kept(prepared, at_start, pins_before)
        self._check_prefix(prepared)
        self.sent = prepared if prepared.outcome != "trimmed" else None
        return prepared

    def _note_checkpoint(self, prepared: Prepared) -> None:
        if prepared.persistence == "saved":
            assert self.session.checkpoint is not None
            self.checkpoints.append(self.session.checkpoint)

    def _check_size(self, prepared: Prepared) -> None:
        counter = self.session.compactor.counter
        counted = counter.request_overhead + sum(map(counter.count_message, prepared.messages))
        assert prepared.tokens == counted <= prepared.budget.input_budget

    def _check_request(self, prepared: Prepared, at_start: list[Message], covered: int) -> None:
        """Every provider takes it, once no call waits any more; the system prompt stands first; the turn's request and the incoming turn are there."""
        problems = [] if pair_tools(at_start).pending_from is not None else violations(prepared.messages)
        assert problems == [], problems
        assert (prepared.messages[0].role, prepared.messages[0].text) == ("system", SYSTEM)
        shown = {row.id: row for row in prepared.messages}
        for message in _open_turn(at_start, covered):
            assert shown.get(message.id) == message, f"{message.id} must be in view"

    def _check_kept(self, prepared: Prepared, at_start: list[Message], pins_before: set[str]) -> None:
        """All that is not covered is in view, in order; pins that were in view stay, and all are after a compaction."""
        if prepared.outcome == "trimmed":
            return
        covered = self._covered()
        shown = [row.id.split("#")[0] for row in prepared.messages]
        assert [message.id for message in at_start[covered:] if message.id not in shown] == []
        verbatim = {row.id for row in prepared.messages if row in at_start}
        on_path = {message.id for message in at_start}
        due = self.pinned if prepared.outcome == "compacted" else pins_before & self.pinned
        assert {pin for pin in due & on_path if pin not in verbatim and self._is_text(pin, at_start)} == set()

    def _covered(self) -> int:
        checkpoint = self.session.checkpoint
        return checkpoint.coverage.count if checkpoint and checkpoint.coverage else 0

    @staticmethod
    def _is_text(pin: str, path: list[Message]) -> bool:
        return all(message.role != "tool" for message in path if message.id == pin)

    def _check_prefix(self, prepared: Prepared) -> None:
        """Between compactions the request only grows at its end."""
        last = self.sent
        if last is None or prepared.outcome in ("compacted", "trimmed") or _repaired(prepared.reasons):
            return
        before, now = encoded(last.messages), encoded(prepared.messages)
        assert now[: len(before)] == before


def _open_turn(path: list[Message], covered: int) -> list[Message]:
    """The request of a turn without a final answer, and the user's messages at the end that nothing covers yet."""
    open_from = max((index + 1 for index, message in enumerate(path) if is_final(message)), default=0)
    asked = [index for index in range(open_from, len(path)) if path[index].role == "user"]
    incoming = max((index + 1 for index, message in enumerate(path) if message.role != "user"), default=0)
    return [path[index] for index in asked if index == asked[-1] or index >= max(incoming, covered)]


def _repaired(reasons: tuple[Reason, ...]) -> bool:
    return any(reason.code in REPAIRS for reason in reasons)


def encoded(messages: tuple[Message, ...]) -> list[str]:
    """Each message as the bytes that are sent."""
    return [js_json(row) for row in openai_chat.encode_request(messages, model="m")["messages"]]


def violations(messages: tuple[Message, ...]) -> list[str]:
    """What any of the three API families would refuse."""
    if messages[-1].role == "assistant":
        messages += (text_message("then", "user", "go on"),)
    bodies = {
        "openai_chat": openai_chat.encode_request(messages, model="m"),
        "openai_responses": openai_responses.encode_request(messages, model="m"),
        "anthropic": anthropic.encode_request(messages, model="m", max_tokens=100),
    }
    return [
        f"{family}: {violation}"
        for family, body in bodies.items()
        for violation in CHECKS[family](json.loads(js_json(body)))
    ]
