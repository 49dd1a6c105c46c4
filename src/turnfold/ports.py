"""Every seam of turnfold as a Protocol: what the runtime needs from the outside world, and nothing more.

Each port ships with a real fake and a contract suite in `turnfold.testing`; every implementation passes it whole.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self

import msgspec

from turnfold.core.checkpoint import Checkpoint, CheckpointKey, CheckpointRecord
from turnfold.core.limits import CallBudget
from turnfold.core.plan import SummaryDraft, SummaryRequest
from turnfold.messages.log import MAIN, Branch, ConversationInfo, ConversationKey, LogEntry, VerifyReport
from turnfold.messages.model import Message, Tool


class TokenCounter(Protocol):
    """Counts tokens of a request's pieces; the whole is `request_overhead` plus the sum of the pieces. Pure and fast."""

    @property
    def name(self) -> str:
        """Under this name counts are stored; it changes when the counts would."""

    @property
    def exact(self) -> bool:
        """Whether the counts are the model's own, not an estimate."""

    @property
    def request_overhead(self) -> int:
        """Tokens of a request beyond its messages and tools."""

    def count_text(self, text: str) -> int:
        """Tokens of bare text."""

    def count_message(self, message: Message) -> int:
        """Tokens of one message as sent, its overhead included. Depends on its role and parts alone."""

    def count_tools(self, tools: Sequence[Tool]) -> int:
        """Tokens of the offered tools' names, descriptions and schemas."""


class Summarizer(Protocol):
    """Turns messages into a summary. The only slow step of a compaction."""

    @property
    def name(self) -> str:
        """For audits and error messages."""

    @property
    def deterministic(self) -> bool:
        """True when no model is called: it costs nothing, and equal requests give equal answers."""

    def generation_room(self, request: SummaryRequest) -> int | None:
        """Tokens that its window leaves for the answer to this request; None when unknown, or when it has no window."""

    async def summarize(self, request: SummaryRequest, calls: CallBudget) -> SummaryDraft:
        """Return a draft. Takes from `calls` before every paid call.

        Raises SummaryError for an unusable answer, ProviderError when the endpoint fails.
        """


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a chat model. `max_output_tokens` None leaves the endpoint's own limit in force."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    max_output_tokens: int | None = None
    temperature: float | None = None


class TextDelta(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a streamed reply's text."""

    text: str


class ChatModel(Protocol):
    """A chat model behind any endpoint. Foreign errors are mapped to ProviderError once, in each implementation."""

    @property
    def name(self) -> str:
        """The model's name as its endpoint knows it."""

    @property
    def context_window(self) -> int | None:
        """Tokens of prompt and output together, where known."""

    @property
    def max_output_tokens(self) -> int | None:
        """The configured limit on one reply, where there is one."""

    async def complete(self, request: ChatRequest) -> Message:
        """Return the reply as an assistant message, with `usage`, `stop_reason` and `model` where reported."""

    def stream(self, request: ChatRequest) -> AsyncIterator[TextDelta | Message]:
        """Yield text deltas, then the whole reply as the last item."""


class MessageLog(Protocol):
    """The append-only log of messages with branches."""

    async def append(
        self,
        key: ConversationKey,
        messages: Sequence[Message],
        *,
        branch: str = MAIN,
        counts: Mapping[str, Sequence[int]] | None = None,
        expected_position: int | None = None,
    ) -> tuple[LogEntry, ...]:
        """Append in order, all or nothing, durable on return; the conversation and its main branch come to be as needed.

        `counts` maps a counter's name to tokens, one for each message. With `expected_position` the branch must end there
        (else VersionConflict). Raises DuplicateMessageError for an id that the conversation has on any branch.
        """

    async def read(
        self, key: ConversationKey, *, branch: str = MAIN, after: int = 0, limit: int | None = None
    ) -> tuple[LogEntry, ...]:
        """Return the rows of the branch's path after position `after`, at most `limit`. NotFoundError for no such branch."""

    async def head(self, key: ConversationKey, *, branch: str = MAIN) -> Branch:
        """Return the branch. NotFoundError where there is none."""

    async def at_seq(self, key: ConversationKey, seq: int, *, branch: str = MAIN) -> LogEntry | None:
        """Return the message number `seq` of the branch's path, or None. One look-up, whatever the length."""

    async def find(self, key: ConversationKey, message_ids: Iterable[str]) -> tuple[LogEntry, ...]:
        """Return the rows with these ids, from any branch, in the order asked; ids that are not there are left out."""

    async def fork(self, key: ConversationKey, name: str, *, position: int, branch: str = MAIN) -> Branch:
        """Make branch `name` from the first `position` rows of `branch`'s path. VersionConflict when the name is taken."""

    async def branches(self, key: ConversationKey) -> tuple[Branch, ...]:
        """Return all branches, oldest first. NotFoundError for no such conversation."""

    async def save_counts(self, key: ConversationKey, counter: str, counts: Mapping[str, int]) -> None:
        """Store tokens by message id under the counter's name: derived data, the messages stay as they are."""

    async def conversations(
        self, *, tenant: str = "", user: str | None = None, after: ConversationKey | None = None, limit: int = 100
    ) -> tuple[ConversationInfo, ...]:
        """List a tenant's conversations in key order, one user's or (None) all users', from beyond `after`."""

    async def purge(self, key: ConversationKey) -> int:
        """Remove a conversation with its checkpoints and state for good; return the number of messages removed."""

    async def verify(self, key: ConversationKey | None = None) -> VerifyReport:
        """Re-derive every chain (of one conversation, or all) and report the first difference of each."""


class CheckpointStore(Protocol):
    """Versioned checkpoints with compare-and-swap."""

    async def save(
        self,
        key: CheckpointKey,
        checkpoint: Checkpoint,
        *,
        expected_version: int,
        rows: Sequence[Message] = (),
        branch: str = MAIN,
    ) -> int:
        """Save as version `expected_version + 1` (which `checkpoint.version` must equal) if the head is `expected_version`.

        `rows` (the summary's own row, kinds outside the chain) are appended to the branch in the same transaction.
        Raises VersionConflict and writes nothing when the head is another.
        """

    async def head_version(self, key: CheckpointKey) -> int:
        """Return the newest version's number, invalidated ones included, or 0."""

    async def load(self, key: CheckpointKey, version: int) -> CheckpointRecord:
        """Return one version. NotFoundError where there is none."""

    async def newest(
        self, key: CheckpointKey, *, before: int | None = None, limit: int = 8
    ) -> tuple[CheckpointRecord, ...]:
        """Return versions newest first, from below `before`."""

    async def invalidate(self, key: CheckpointKey, version: int, reason: str) -> None:
        """Mark one version unusable for everyone; doing it again changes nothing. NotFoundError where there is none."""


class StateStore(Protocol):
    """Small named documents of a conversation (pins, breakers, prompt revision), each with its own version."""

    async def get_state(self, key: ConversationKey, name: str) -> tuple[int, bytes]:
        """Return (version, document), or (0, b"")."""

    async def put_state(self, key: ConversationKey, name: str, document: bytes, *, expected_version: int) -> int:
        """Store and return the new version. VersionConflict when the stored version is another."""


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What a conversation is now, as one transaction sees it: the newest checkpoint's version (0 for none), where the
    branch ends, and its rows after the position that was asked for.
    """

    head_version: int = 0
    position: int = 0
    entries: tuple[LogEntry, ...] = ()


class Store(MessageLog, CheckpointStore, StateStore, Protocol):
    """What a session needs: one place that keeps log, checkpoints and state in the same transactions."""

    async def changes(self, key: CheckpointKey, *, branch: str = MAIN, after: int = 0) -> Changes:
        """Return what `head_version`, `head` and `read` would, in one look: what a turn asks for when nothing happened.

        A conversation, or a main branch, that is yet to be has nothing. NotFoundError for another branch that is not there.
        A `position` before `after` means that the conversation was purged since.
        """


class OpenableStore(Store, Protocol):
    """A store that is opened and closed with `async with`."""

    async def __aenter__(self) -> Self:
        """Open it."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""


class Clock(Protocol):
    """Time, handed in so that it can be controlled."""

    def now_ms(self) -> int:
        """Milliseconds of UTC wall time since 1970."""

    def monotonic_ms(self) -> float:
        """Milliseconds of a clock that never goes back."""
