"""Every exception that turnfold raises on purpose.

    TurnfoldError
    ├── InputError                  what the caller gave cannot be used
    │   ├── TranscriptError         a file or request is not a readable conversation (place, reason, cure)
    │   ├── ConfigError             a scenario or setting breaks rules (all problems at once)
    │   ├── GroupsError             explicit groups are not contiguous, ordered and disjoint
    │   └── NotFoundError           a conversation, branch, message, checkpoint or file is not there
    ├── MissingExtraError           an optional package is not installed (names the extra)
    ├── PlanningError               no legal compaction exists for these messages
    ├── ContextOverflowError        the request cannot be made to fit the input budget
    │   ├── FloorError              the part that compaction cannot touch is over the budget by itself
    │   └── StillTooLargeError      the provider refuses the smaller requests, too
    ├── ProviderError               a model endpoint failed
    │   ├── ProviderOverflowError   it said that the request is larger than its window
    │   ├── ProviderAuthError       it refused the credentials
    │   ├── ProviderRateLimitError  it asked to slow down
    │   ├── ProviderUnavailableError it could not be reached, or failed inside
    │   └── ProviderRequestError    it refused the request for another reason
    ├── SummaryError                a summarizer gave no usable summary
    │   ├── SummaryRejectedError    it answered, but not with a summary
    │   ├── SummaryTimeoutError     it did not answer within its limit
    │   └── SummaryLimitError       the bounds on calls or time leave no room for another try
    └── StoreError                  a store failed
        ├── VersionConflict         compare-and-swap lost: someone else wrote first
        ├── DuplicateMessageError   a message id is already in the conversation
        ├── CorruptRowError         a stored row cannot be read (names it)
        ├── ChainError              stored messages do not hash to the stored chain
        ├── SchemaError             the store's schema is newer than this release, or not turnfold's
        └── StoreUnavailableError   locked, read-only, full, or gone

Each carries its facts as attributes; its text says what happened and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence


class TurnfoldError(Exception):
    """Root of every error raised on purpose."""


class InputError(TurnfoldError):
    """What the caller gave cannot be used."""


class TranscriptError(InputError):
    """A file or request is not a readable conversation.

    `place` is where (a line, an index, a path into the document), `reason` what is wrong there, `cure` what to do.
    """

    def __init__(self, place: str, reason: str, cure: str) -> None:
        super().__init__(f"{place}: {reason}. {cure}")
        self.place, self.reason, self.cure = place, reason, cure


class ConfigError(InputError):
    """A scenario or a setting breaks one or more rules; `problems` holds one sentence for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class GroupsError(InputError):
    """Explicit groups are not contiguous, ordered and disjoint; `message_id` is the first id that breaks the rule."""

    def __init__(self, message_id: str, reason: str) -> None:
        super().__init__(
            f"groups: message {message_id!r} {reason}. List every message of the history once, in order, "
            "each group a run without gaps."
        )
        self.message_id, self.reason = message_id, reason


class NotFoundError(InputError):
    """`what` (conversation, branch, message, checkpoint, file) named `name` is not there."""

    def __init__(
        self, what: str, name: str, cure: str = "Check the name and the tenant and user it belongs to."
    ) -> None:
        super().__init__(f"no {what} {name!r}. {cure}")
        self.what, self.name = what, name


class MissingExtraError(TurnfoldError):
    """An optional package is not installed; `extra` is what to install."""

    def __init__(self, extra: str, package: str) -> None:
        super().__init__(f"{package} is not installed. Run: pip install 'turnfold[{extra}]'")
        self.extra, self.package = extra, package


class PlanningError(TurnfoldError):
    """No legal compaction exists for these messages; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ContextOverflowError(TurnfoldError):
    """The request cannot be made to fit.

    All counts in tokens: `input_budget`, `tokens` (the smallest request that could be built), `floor` (what compaction
    cannot touch) and `parts`, the largest parts first as (name, tokens).
    """

    def __init__(self, input_budget: int, tokens: int, floor: int, parts: Sequence[tuple[str, int]]) -> None:
        self.input_budget, self.tokens, self.floor, self.parts = input_budget, tokens, floor, tuple(parts)
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        largest = ", ".join(f"{name} {count}" for name, count in self.parts[:3]) or "nothing else"
        return (
            f"the smallest request is {self.tokens} tokens, the input budget {self.input_budget} "
            f"(floor {self.floor}; largest: {largest}). Shorten the largest part, lower the output reserve, "
            "or use a model with a larger window."
        )


class FloorError(ContextOverflowError):
    """The fixed prompt, tools, pins and the incoming turn are over the input budget before any history."""

    def _sentence(self) -> str:
        name, count = self.parts[0] if self.parts else ("the request", self.floor)
        return (
            f"{name} takes {count} tokens; the part that compaction cannot touch is {self.floor} tokens, the input "
            f"budget {self.input_budget}. Shorten {name}, lower the output reserve, or use a model with a larger window."
        )


class StillTooLargeError(ContextOverflowError):
    """The provider refused the request as too large, and so it did the smaller ones made of it in the same turn.

    `tokens` is the last one by our own count.
    """

    def _sentence(self) -> str:
        return (
            f"the provider refuses the request as too large, the last time at {self.tokens} tokens by our count; the input "
            f"budget is {self.input_budget}. Set the context window to the model's real one, or use a model with a larger one."
        )


class ProviderError(TurnfoldError):
    """A model endpoint failed. `status` is its HTTP status where there was one, `detail` its own words, shortened."""

    cure = "Look at the endpoint's own message."
    retryable = False

    def __init__(self, detail: str, *, status: int | None = None) -> None:
        where = f" (HTTP {status})" if status is not None else ""
        super().__init__(f"the model endpoint failed{where}: {detail[:500]}. {self.cure}")
        self.detail, self.status = detail, status


class ProviderOverflowError(ProviderError):
    """The endpoint said that the request is larger than the model's window."""

    cure = "Compact the conversation, or lower the configured window to the model's real one."


class ProviderAuthError(ProviderError):
    """The endpoint refused the credentials."""

    cure = "Check the API key's environment variable and the base URL."


class ProviderRateLimitError(ProviderError):
    """The endpoint asked to slow down."""

    cure = "Wait and try again, or raise the limit with the provider."
    retryable = True


class ProviderUnavailableError(ProviderError):
    """The endpoint could not be reached, timed out, or failed inside."""

    cure = "Check that the endpoint runs and the base URL is right, then try again."
    retryable = True


class ProviderRequestError(ProviderError):
    """The endpoint refused the request for a reason that trying again will not cure."""

    cure = "Check the model's name and the request's parameters."


class SummaryError(TurnfoldError):
    """A summarizer gave no usable summary; `code` is a stable word for it, `detail` a sentence."""

    code = "failed"

    def __init__(self, detail: str, *, code: str | None = None) -> None:
        super().__init__(f"no usable summary: {detail}")
        self.detail = detail
        if code is not None:
            self.code = code


class SummaryRejectedError(SummaryError):
    """The summarizer answered with something that is not a summary (`code`: blank, refused, cut_off, echo, ...)."""

    code = "rejected"


class SummaryTimeoutError(SummaryError):
    """The summarizer did not answer within its time limit."""

    code = "timeout"


class SummaryLimitError(SummaryError):
    """The bounds on model calls or time leave no room for another try."""

    code = "limit"


class StoreError(TurnfoldError):
    """A store failed."""


class VersionConflict(StoreError):
    """Compare-and-swap lost: the head is `actual`, the writer expected `expected`. Load again and decide anew."""

    def __init__(self, what: str, expected: int, actual: int) -> None:
        super().__init__(f"{what}: expected version {expected}, found {actual}. Load it again and decide anew.")
        self.what, self.expected, self.actual = what, expected, actual


class DuplicateMessageError(StoreError):
    """A message with this id is already in the conversation; nothing was written."""

    def __init__(self, message_id: str) -> None:
        super().__init__(f"message {message_id!r} is already in the conversation. Nothing was written; use a new id.")
        self.message_id = message_id


class CorruptRowError(StoreError):
    """A stored row cannot be read; `row` names it. Nothing is skipped: restore it from a backup or purge it."""

    def __init__(self, row: str, reason: str) -> None:
        super().__init__(
            f"stored row {row} is corrupt: {reason}. Restore the store from a backup; nothing was skipped."
        )
        self.row, self.reason = row, reason


class ChainError(StoreError):
    """Stored messages do not hash to the stored chain; `where` names the first that differs."""

    def __init__(self, where: str) -> None:
        super().__init__(f"the chain breaks at {where}: a stored message was changed. Restore the store from a backup.")
        self.where = where


class SchemaError(StoreError):
    """The store's schema is `found`, this release knows up to `known`."""

    def __init__(self, found: str, known: int) -> None:
        super().__init__(
            f"the store has schema {found}; this release knows up to {known}. Upgrade turnfold to open it."
        )
        self.found, self.known = found, known


class StoreUnavailableError(StoreError):
    """The store is locked, read-only, full or gone; `reason` is a stable word, `detail` the database's own words."""

    cures = {  # noqa: RUF012 - a constant table
        "locked": "Another process holds it; try again.",
        "read_only": "Make the file and its folder writable.",
        "full": "Free some disk space; nothing was written.",
        "not_a_store": "Give the path of a turnfold store.",
        "gone": "Check the path or the connection.",
    }

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"the store is unavailable ({reason}): {detail}. {self.cures.get(reason, 'Try again.')}")
        self.reason, self.detail = reason, detail
