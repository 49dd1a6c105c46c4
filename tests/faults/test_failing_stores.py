"""Sessions on stores that fail, answer late, or lose their writer half-way: every turn is served or says why, nothing is lost."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.small_sessions import KEY, exchange, small_session
from turnfold.core.checkpoint import CheckpointKey
from turnfold.errors import DuplicateMessageError, StoreError
from turnfold.messages.model import Message
from turnfold.ports import Store
from turnfold.session import Session
from turnfold.stores.memory import MemoryStore
from turnfold.testing.faulty import Fault, FaultyStore, answer_late, delay, fail_after, fail_before

LINE = CheckpointKey(tenant=KEY.tenant, user=KEY.user, conversation_id=KEY.conversation_id)
TURNS = 14
"""Enough for two compactions."""
OPERATIONS = ("append", "changes", "save", "head_version", "newest", "at_seq", "read", "find", "get_state", "put_state")


class Talk:
    """A user who says each thing until it is said: what was refused is said again under the same id."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.errors: list[StoreError] = []
        self.outcomes: Counter[str] = Counter()

    async def turn(self, number: int) -> None:
        """Append a question and its answer, and prepare."""
        for message in exchange(number):
            await self.append(message)
        try:
            prepared = await self.session.prepare()
        except StoreError as error:
            self.errors.append(error)
            return
        self.outcomes[prepared.persistence] += 1
        assert prepared.tokens <= prepared.budget.input_budget
        assert prepared.messages[-1].id == f"a{number}"

    async def append(self, message: Message) -> None:
        """Append once, again while the store fails. A duplicate means that it was written although it seemed to fail."""
        for _ in range(3):
            try:
                await self.session.append(message)
            except DuplicateMessageError:
                assert self.errors
                return
            except StoreError as error:
                self.errors.append(error)
            else:
                return
        pytest.fail("three failures in a row")


async def talk_through(store: FaultyStore) -> Talk:
    """Hold a conversation on a store with faults, and look at what is left of it without them."""
    async with _opened(store) as session:
        talk = Talk(session)
        for number in range(TURNS):
            await talk.turn(number)
    await holds_everything(store.store)
    return talk


@contextlib.asynccontextmanager
async def _opened(store: FaultyStore) -> AsyncIterator[Session]:
    """Open a session; opening reads too, so it is tried again as a user would."""
    for _ in range(20):
        try:
            async with contextlib.AsyncExitStack() as stack:
                session = await stack.enter_async_context(small_session(store))
                stack.pop_all()
        except StoreError:
            continue
        yield session
        return
    pytest.fail("the session could not be opened")


async def holds_everything(store: Store) -> None:
    """Every message once and in order, versions 1, 2, 3..., a store that verifies, and a view that ends with the last one."""
    entries = [entry.message.id for entry in await store.read(KEY) if entry.message.kind == "message"]
    assert entries == [message.id for number in range(TURNS) for message in exchange(number)]
    assert (await store.verify()).problems == ()
    records = await store.newest(LINE, limit=100)
    assert [record.version for record in records] == list(range(len(records), 0, -1))
    async with small_session(store) as session:
        prepared = await session.prepare()
        assert prepared.messages[-1].id == f"a{TURNS - 1}"


async def test_without_faults_it_compacts() -> None:
    """What follows is about a conversation that compacts, so that every operation is called."""
    store = FaultyStore(MemoryStore())
    talk = await talk_through(store)
    assert talk.outcomes["saved"] >= 2
    assert store.calls.keys() >= {"append", "changes", "save", "head_version", "newest", "at_seq", "read", "get_state"}


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_failure_at_each_call(operation: str) -> None:
    """One failure of one operation, at whichever of its calls, done or not done, costs that call and nothing else."""
    for make in (fail_before, fail_after):
        for call in (1, 2, 3, 5, 8, 13):
            store = FaultyStore(MemoryStore(), make(operation, call))
            talk = await talk_through(store)
            assert len(talk.errors) <= 1
            assert talk.outcomes["saved"] >= 1


async def test_a_checkpoint_that_cannot_be_saved_costs_no_turn() -> None:
    """While no checkpoint can be saved every turn is served, compacted, and says that it will not be remembered."""
    store = FaultyStore(MemoryStore(), fail_before("save"))
    talk = await talk_through(store)
    assert talk.errors == []
    assert talk.outcomes["failed"] >= 2
    assert talk.outcomes["saved"] == 0


async def test_a_save_whose_answer_was_lost_is_found_again() -> None:
    """A checkpoint that was stored although its writer was told otherwise is used from the next turn on, once."""
    store = FaultyStore(MemoryStore(), fail_after("save", 1))
    talk = await talk_through(store)
    assert talk.errors == []
    assert talk.outcomes["failed"] == 1
    records = await store.store.newest(LINE, limit=100)
    assert len(records) == 1 + talk.outcomes["saved"]


async def test_breakers_that_cannot_be_kept_cost_no_turn() -> None:
    """State that can be neither read nor written once the session is open stops no turn."""
    store = FaultyStore(MemoryStore())
    async with small_session(store) as session:
        store.faults += [fail_before("get_state"), fail_before("put_state")]
        talk = Talk(session)
        for number in range(TURNS):
            await talk.turn(number)
    assert talk.errors == []
    assert talk.outcomes["saved"] >= 2
    await holds_everything(store.store)


@pytest.mark.parametrize("fault", [delay, answer_late], ids=["slow", "late"])
async def test_a_slow_store_only_takes_time(fault: object) -> None:
    """However slow each call is, the conversation is the same."""
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)
        await asyncio.sleep(0)

    slow = Fault(operation="*", delay_s=5.0) if fault is delay else Fault(operation="*", late_s=5.0)
    talk = await talk_through(FaultyStore(MemoryStore(), slow, sleep=wait))
    assert talk.errors == []
    assert talk.outcomes["saved"] >= 2
    assert len(waited) > TURNS


async def test_what_arrives_during_a_slow_save_is_in_the_next_view() -> None:
    """Messages appended by others while a checkpoint is being saved are neither lost nor covered."""
    arrived = asyncio.Event()
    inner = MemoryStore()

    async def meanwhile(_: float) -> None:
        await inner.append(KEY, exchange(1000))
        arrived.set()

    store = FaultyStore(inner, delay("save", 1.0, 1), sleep=meanwhile)
    async with small_session(store) as session:
        for number in range(8):
            await session.append(*exchange(number))
        prepared = await session.compact()
        assert arrived.is_set()
        assert prepared.persistence == "saved"
        assert (await session.context_ids())[-2:] == ("u1000", "a1000")
        assert (await inner.verify()).problems == ()


async def _say_and_compact(session: Session) -> None:
    await session.append(*exchange(TURNS - 1))
    await session.compact()


async def test_a_cancelled_turn_leaves_the_session_usable() -> None:
    """A caller that gives up while the store is slow can go on with the same session."""
    for operation in ("changes", "save", "append"):
        never = asyncio.Event()

        async def hang(_: float, never: asyncio.Event = never) -> None:
            await never.wait()

        store = FaultyStore(MemoryStore(), sleep=hang)
        async with small_session(store) as session:
            for number in range(TURNS - 1):
                await session.append(*exchange(number))
            store.faults.append(delay(operation, 1.0))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(_say_and_compact(session), 0.02)
            store.faults.clear()
            if operation == "append":
                await session.append(*exchange(TURNS - 1))
            prepared = await session.compact()
            assert prepared.persistence == "saved"
        await holds_everything(store.store)


faults = st.builds(
    lambda make, operation, calls: make(operation, *calls),
    st.sampled_from([fail_before, fail_after]),
    st.sampled_from(OPERATIONS),
    st.lists(st.integers(1, 25).map(lambda call: 2 * call), min_size=1, max_size=6, unique=True),
)
"""Failures of calls that are not next to each other, so that saying a thing again gets through."""


@given(given_faults=st.lists(faults, max_size=3, unique_by=lambda fault: fault.operation))
async def test_any_failures_lose_nothing(given_faults: list[Fault]) -> None:
    """Whichever calls fail, done or not, the conversation is whole, each message once, and the next turn is served."""
    await talk_through(FaultyStore(MemoryStore(), *given_faults))
