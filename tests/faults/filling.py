"""What must hold when a disk fills up, or becomes read-only, under an open store, however that is brought about."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.small_sessions import KEY, exchange, small_session
from turnfold.core.checkpoint import CheckpointKey
from turnfold.errors import StoreUnavailableError
from turnfold.messages.model import Message, text_message
from turnfold.stores.sqlite import SqliteStore

LINE = CheckpointKey(tenant=KEY.tenant, user=KEY.user, conversation_id=KEY.conversation_id)
MOST = 200
"""Appends of 20 kB, more than any of the disks here holds."""


def large(number: int) -> Message:
    """Return a message of 20 kB, none like another."""
    return text_message(f"m{number}", "user", f"{number} " * (20_000 // len(f"{number} ")))


async def fill_and_go_on(path: Path, *, full: Callable[[], object], free: Callable[[], object], reason: str) -> None:
    """Append until the disk is full, be refused by every kind of write, read on, and write again once there is room."""
    async with SqliteStore(path) as store:
        await store.append(KEY, exchange(0))
        full()
        written = await append_until_refused(store, reason)
        before = await store.read(KEY)
        assert [entry.message.id for entry in before][2:] == [f"m{number}" for number in range(written)]
        for write in (
            store.append(KEY, [large(MOST)]),
            store.put_state(KEY, "notes", b"x" * 400_000, expected_version=0),
            store.append(type(KEY)(conversation_id="another"), [large(number) for number in range(20)]),
        ):
            await refused(write, reason)
        assert await store.read(KEY) == before
        assert await store.get_state(KEY, "notes") == (0, b"")
        assert (await store.verify()).problems == ()
        free()
        await store.append(KEY, [large(MOST)])
        await store.put_state(KEY, "notes", b"x" * 400_000, expected_version=0)
        assert await store.read(KEY, after=len(before)) != ()
        assert (await store.verify()).problems == ()
    async with SqliteStore(path) as store, small_session(store) as session:
        assert [entry.message.id for entry in await store.read(KEY)][-1] == f"m{MOST}"
        assert session.branch == "main"
        assert (await store.verify()).problems == ()


async def append_until_refused(store: SqliteStore, reason: str) -> int:
    """Return how many appends were acknowledged."""
    for number in range(MOST):
        found = await why_refused(store.append(KEY, [large(number)]))
        if found is not None:
            assert found == reason
            return number
    raise AssertionError("the disk did not fill up")


async def why_refused(write: Awaitable[object]) -> str | None:
    """Return the reason for which a write was refused, None when it was not."""
    try:
        await write
    except StoreUnavailableError as error:
        return error.reason
    return None


async def refused(write: Awaitable[object], reason: str) -> None:
    """The write is refused with the reason."""
    assert await why_refused(write) == reason
