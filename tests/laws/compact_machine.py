"""A random chat product on the Compact runtime: it talks, edits, deletes, regenerates, changes roles, and things break."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.laws.compact_oracle import Truth, problems, record_problems, stamp_of, write_summary
from tests.rough_counter import RoughCounter
from turnfold.core.checkpoint import Checkpoint, CheckpointKey, CheckpointRecord
from turnfold.core.plan import SummaryRequest
from turnfold.core.policy import Policy
from turnfold.errors import ContextOverflowError, ProviderUnavailableError, StoreUnavailableError
from turnfold.messages.log import MAIN
from turnfold.messages.model import Message, Role, Text, ToolCall, ToolResult, text_message
from turnfold.runtime.compact_runtime import CompactOptions, CompactRuntime
from turnfold.runtime.compactor import Compactor
from turnfold.runtime.decision import Prepared
from turnfold.runtime.requests import CompactRequest
from turnfold.stores.memory import MemoryStore
from turnfold.summarizers.scripted import HANG, Answer, ScriptedSummarizer
from turnfold.testing.faulty import Fault, FaultyStore, answer_late, delay, fail_after, fail_before
from turnfold.testing.virtual_time import virtual_runner

KEY = CheckpointKey(conversation_id="c", user="ann", scenario="rp")
COUNTER = RoughCounter()
OPTIONS = CompactOptions(
    scenario="rp",
    context_window=1_400,
    output_reserve=200,
    safety_margin=50,
    trigger_ratio=0.7,
    mutation_timeout_ms=5_000,
)
POLICY = Policy(
    planner="bounded_recent",
    mask_tool_results=False,
    max_summary_tokens=250,
    max_model_calls=2,
    max_compaction_ms=60_000,
    summary_form="plain",
    fallback_on_failure=False,
)


def _full() -> StoreUnavailableError:
    return StoreUnavailableError("full", "injected")


STORE_FAULTS: dict[str, Fault] = {
    "cannot read": fail_before("newest"),
    "reads hang": delay("newest", 600),
    "disk full": fail_before("save", error=_full),
    "connection lost before": fail_before("save"),
    "connection lost after": fail_after("save"),
    "late and written": answer_late("save", 600),
    "late and lost": delay("save", 600),
    "marks fail": fail_before("invalidate", error=_full),
    "marks hang": delay("invalidate", 600),
    "no state": fail_before("get_state"),
    "state hangs": delay("put_state", 600),
}
MODEL_FAULTS: dict[str, Answer] = {
    "down": ProviderUnavailableError("down"),
    "blank": " ",
    "hangs": HANG,
    "raises": ValueError("a bug of its own"),
}
sizes = st.sampled_from([5, 20, 60, 150, 300])
picks = st.integers(0, 2**16)


class _LateStore(FaultyStore):
    """A store whose writes may land after their caller gave up."""

    lands_later = False
    landing: set[asyncio.Task[int]]

    async def save(
        self,
        key: CheckpointKey,
        checkpoint: Checkpoint,
        *,
        expected_version: int,
        rows: Sequence[Message] = (),
        branch: str = MAIN,
    ) -> int:
        if not self.lands_later:
            return await super().save(key, checkpoint, expected_version=expected_version, rows=rows, branch=branch)

        async def later() -> int:
            await asyncio.sleep(5.5)  # when the caller has given up
            return await self.store.save(key, checkpoint, expected_version=expected_version, rows=rows, branch=branch)

        self.landing.add(task := asyncio.ensure_future(later()))
        return await asyncio.shield(task)


class Worker:
    """One process of the product."""

    def __init__(self, machine: CompactMachine, options: CompactOptions) -> None:
        self.machine = machine
        self.store = _LateStore(machine.inner)
        self.store.landing = set()
        self.fault: Answer | None = None
        compactor = Compactor(
            counter=COUNTER,
            summarizer=ScriptedSummarizer(self.summarize),
            fallback=ScriptedSummarizer(lambda asked: write_summary(asked, machine.role), deterministic=True),
            policy=POLICY,
            clock=machine.time,
            new_frame=lambda: "frame",
        )
        self.runtime = CompactRuntime(self.store, compactor, options, new_id=machine.new_id)

    async def summarize(self, request: SummaryRequest) -> Answer:
        """Take a moment, so that workers overlap, and answer as the fault says."""
        await asyncio.sleep(1 + len(request.messages) % 3)
        return write_summary(request, self.machine.role) if self.fault is None else self.fault


class CompactMachine(RuleBasedStateMachine):
    """One conversation of the product, two workers, one store. `explicit`: requests give their groups themselves."""

    explicit = False

    def __init__(self) -> None:
        super().__init__()
        self.runner, self.time = virtual_runner()
        self.inner = MemoryStore()
        self.names = self.stamps = 0
        self.role = "lia"
        self.window = 0
        self.conversation: list[Message] = []
        self.places: dict[int, int] = {}
        options = msgspec.structs.replace(OPTIONS, explicit_groups=self.explicit)
        self.workers = (Worker(self, options), Worker(self, options))

    def teardown(self) -> None:
        """Let what still waits end, and close the loop."""
        self.runner.close()

    # -- saying things -------------------------------------------------------------------------------------------

    def new_id(self) -> str:
        """Return a new id."""
        self.names += 1
        return f"m{self.names}"

    def text(self, size: int, place: int) -> str:
        """Return a text with a new stamp, `size` characters or a little more."""
        self.stamps += 1
        self.places[self.stamps] = place
        return f"#{self.stamps}# " + "wind " * (size // 5)

    def said(self, role: Role, size: int) -> Message:
        """Return a new message."""
        message_id = self.new_id()
        return text_message(message_id, role, self.text(size, self.names))

    def replies(self, size: int, *, tools: bool) -> list[Message]:
        """Return an answer, after parallel calls and their results if there are `tools`."""
        if not tools:
            return [self.said("assistant", size)]
        ids = (self.new_id(), self.new_id())
        spoken = self.said("assistant", 10)
        calls = tuple(ToolCall(id=call_id, name="look", arguments="{}") for call_id in ids)
        found = [self.said("tool", size) for _ in ids]
        results = [
            Message(id=row.id, role="tool", parts=(ToolResult(call_id=call_id, content=(Text(text=row.text),)),))
            for call_id, row in zip(ids, found, strict=True)
        ]
        return [
            Message(id=spoken.id, role="assistant", parts=(*spoken.parts, *calls)),
            *results,
            *self.replies(size, tools=False),
        ]

    # -- requests ------------------------------------------------------------------------------------------------

    def request(self, incoming: tuple[Message, ...], request_type: str = "chat", injected: int = 0) -> CompactRequest:
        """Return a request with the end of the conversation as its history."""
        history = tuple(self.conversation[-self.window :])
        return CompactRequest(
            conversation_id=KEY.conversation_id,
            user=KEY.user,
            request_type=request_type,
            role_id=self.role,
            persona=f"{self.role} keeps the gate",
            fixed_prompt=(text_message("", "system", f"You are {self.role}. " + "rule " * 40),),
            history=history,
            incoming=incoming,
            injected=(text_message("", "system", "fog " * injected),) if injected else (),
            groups=_turn_ids(history),
        )

    def run(self, work: Awaitable[object]) -> object:
        """Run in the machine's time."""

        async def main() -> object:
            return await work

        return self.runner.run(main())

    def records(self) -> list[CheckpointRecord]:
        """Return all versions, oldest first, past every fault."""
        return sorted(self.run(self.inner.newest(KEY, limit=10_000)), key=lambda record: record.version)  # type: ignore[call-overload,no-any-return]

    def ask(self, request: CompactRequest, workers: int = 1) -> list[Prepared]:
        """Send the request through some workers at once and judge everything that comes of it."""
        before = self.records()

        async def all_at_once() -> list[Prepared | BaseException]:
            asked = (worker.runtime.prepare(request) for worker in self.workers[:workers])
            results = await asyncio.gather(*asked, return_exceptions=True)
            await asyncio.sleep(1_000)  # what was late has landed
            return results

        results: list[Prepared | BaseException] = self.run(all_at_once())  # type: ignore[assignment]
        prepared = [result for result in results if isinstance(result, Prepared)]
        truth = Truth(places=self.places, alive=frozenset(map(stamp_of, self.conversation)))
        for result in results:
            if isinstance(result, Prepared):
                assert problems(request, result, truth, COUNTER) == [], result
            else:
                assert isinstance(result, ContextOverflowError), result
                assert self.smallest(request) > result.input_budget, result
        assert record_problems(before, self.records(), prepared) == []
        return prepared

    def smallest(self, request: CompactRequest) -> int:
        """Return the tokens of a request without any whole turn."""
        rest = _unfinished(request.history)
        return sum(map(COUNTER.count_message, (*request.fixed_prompt, *rest, *request.injected, *request.incoming)))

    # -- rules ---------------------------------------------------------------------------------------------------

    types = st.sampled_from(["chat", "chat", "chat", "auto_reply", "suggestion"])
    fogs = st.sampled_from([0, 0, 0, 100, 300])

    @rule(size=sizes, answer=sizes, tools=st.booleans(), request_type=types, fog=fogs)
    def speak(self, *, size: int, answer: int, tools: bool, request_type: str, fog: int) -> None:
        """The user says something; the reply is stored."""
        said = self.said("user", size)
        self.ask(self.request((said,), request_type, fog))
        self.conversation += [said, *self.replies(answer, tools=tools)]

    @rule(turns=st.integers(2, 8), size=sizes)
    def talk(self, *, turns: int, size: int) -> None:
        """Some turns in a row."""
        for _ in range(turns):
            self.speak(size=size, answer=size, tools=False, request_type="chat", fog=0)

    @rule(size=sizes)
    def speak_in_vain(self, *, size: int) -> None:
        """The user's line is stored, and no reply came."""
        self.conversation.append(self.said("user", size))

    @rule(request_type=st.sampled_from(["continue", "suggestion"]), answer=sizes)
    def go_on(self, *, request_type: str, answer: int) -> None:
        """A reply is asked for without a new line."""
        self.ask(self.request((), request_type))
        self.conversation.append(self.said("assistant", answer))

    @rule(size=sizes)
    def two_at_once(self, *, size: int) -> None:
        """Two workers serve the same line; one reply is kept."""
        said = self.said("user", size)
        self.ask(self.request((said,)), workers=2)
        self.conversation += [said, self.said("assistant", 20)]

    @precondition(lambda self: self.conversation)
    @rule(size=sizes)
    def regenerate(self, *, size: int) -> None:
        """The last reply is thrown away and asked for again."""
        while self.conversation and self.conversation[-1].role != "user":
            self.conversation.pop()
        if self.conversation:
            said = self.conversation.pop()
            self.ask(self.request((said,)))
            self.conversation += [said, self.said("assistant", size)]

    @precondition(lambda self: self.conversation)
    @rule(pick=picks, size=sizes, new_id=st.booleans())
    def edit(self, *, pick: int, size: int, new_id: bool) -> None:
        """A message says something else, under its own id or a new one."""
        index = pick % len(self.conversation)
        old = self.conversation[index]
        if old.calls or old.results:
            return
        changed = text_message(old.id, old.role, self.text(size, self.places[stamp_of(old)]))
        self.conversation[index] = msgspec.structs.replace(changed, id=self.new_id() if new_id else old.id)

    @precondition(lambda self: self.conversation)
    @rule(pick=picks)
    def delete(self, *, pick: int) -> None:
        """A message is deleted."""
        index = pick % len(self.conversation)
        if not (self.conversation[index].calls or self.conversation[index].results):
            del self.conversation[index]

    @rule(pick=st.integers(0, 12))
    def rewind(self, *, pick: int) -> None:
        """The last messages are deleted."""
        del self.conversation[len(self.conversation) - min(pick, len(self.conversation)) :]

    @rule(role=st.sampled_from(["lia", "lia", "tom"]))
    def change_role(self, *, role: str) -> None:
        """Another character, or the same."""
        self.role = role

    @rule(window=st.sampled_from([0, 0, 48, 24, 24, 13, 6]))
    def change_window(self, *, window: int) -> None:
        """Requests carry only the last `window` messages (0: all)."""
        self.window = window

    @rule(worker=st.integers(0, 1), fault=st.sampled_from([None, None, *STORE_FAULTS]), later=st.booleans())
    def break_store(self, *, worker: int, fault: str | None, later: bool) -> None:
        """A worker's way to the store breaks, or works again."""
        store = self.workers[worker].store
        store.faults = [] if fault is None else [STORE_FAULTS[fault]]
        store.lands_later = later and fault is None

    @rule(worker=st.integers(0, 1), fault=st.sampled_from([None, None, *MODEL_FAULTS]))
    def break_model(self, *, worker: int, fault: str | None) -> None:
        """A worker's model breaks, or works again."""
        self.workers[worker].fault = None if fault is None else MODEL_FAULTS[fault]


class ExplicitMachine(CompactMachine):
    """The same with explicit groups."""

    explicit = True


def _turn_ids(history: tuple[Message, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the finished turns of a history as groups of ids."""
    finished = len(history) - len(_unfinished(history))
    groups: list[list[str]] = []
    for index, message in enumerate(history[:finished]):
        if not groups or (message.role == "user" and history[index - 1].role == "assistant"):
            groups.append([])
        groups[-1].append(message.id)
    return tuple(map(tuple, groups))


def _unfinished(history: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return what follows the last answer of a history."""
    for end in range(len(history), 0, -1):
        if history[end - 1].role == "assistant" and not history[end - 1].calls:
            return history[end:]
    return history
