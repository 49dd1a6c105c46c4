"""Context compaction for LLM conversations: every message kept, the view computed.

The public names. Each is loaded from its module when it is first used, so that `import turnfold` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turnfold.blocking import Blocking
    from turnfold.config.settings import Settings
    from turnfold.core.budget import Budget
    from turnfold.core.policy import Policy
    from turnfold.errors import (
        ChainError,
        ConfigError,
        ContextOverflowError,
        CorruptRowError,
        DuplicateMessageError,
        FloorError,
        GroupsError,
        InputError,
        MissingExtraError,
        NotFoundError,
        PlanningError,
        ProviderAuthError,
        ProviderError,
        ProviderOverflowError,
        ProviderRateLimitError,
        ProviderRequestError,
        ProviderUnavailableError,
        SchemaError,
        StillTooLargeError,
        StoreError,
        StoreUnavailableError,
        SummaryError,
        SummaryLimitError,
        SummaryRejectedError,
        SummaryTimeoutError,
        TranscriptError,
        TurnfoldError,
        VersionConflict,
    )
    from turnfold.messages.log import Branch, ConversationKey, LogEntry
    from turnfold.messages.model import (
        Image,
        Message,
        Opaque,
        Reasoning,
        Text,
        Tool,
        ToolCall,
        ToolResult,
        Usage,
        text_message,
    )
    from turnfold.ports import ChatModel, ChatRequest, Clock, Store, Summarizer, TextDelta, TokenCounter
    from turnfold.runtime.compact_runtime import CompactOptions, CompactRuntime
    from turnfold.runtime.compactor import Compactor
    from turnfold.runtime.decision import Prepared
    from turnfold.runtime.events import CompactionFailed, CompactionFinished, CompactionStarted
    from turnfold.runtime.requests import CompactRequest
    from turnfold.session.agent import Agent, RunnableTool
    from turnfold.session.session import Session
    from turnfold.wiring import make_compactor, memory_store, new_id, open_session, open_store

__all__ = [
    "Agent",
    "Blocking",
    "Branch",
    "Budget",
    "ChainError",
    "ChatModel",
    "ChatRequest",
    "Clock",
    "CompactOptions",
    "CompactRequest",
    "CompactRuntime",
    "CompactionFailed",
    "CompactionFinished",
    "CompactionStarted",
    "Compactor",
    "ConfigError",
    "ContextOverflowError",
    "ConversationKey",
    "CorruptRowError",
    "DuplicateMessageError",
    "FloorError",
    "GroupsError",
    "Image",
    "InputError",
    "LogEntry",
    "Message",
    "MissingExtraError",
    "NotFoundError",
    "Opaque",
    "PlanningError",
    "Policy",
    "Prepared",
    "ProviderAuthError",
    "ProviderError",
    "ProviderOverflowError",
    "ProviderRateLimitError",
    "ProviderRequestError",
    "ProviderUnavailableError",
    "Reasoning",
    "RunnableTool",
    "SchemaError",
    "Session",
    "Settings",
    "StillTooLargeError",
    "Store",
    "StoreError",
    "StoreUnavailableError",
    "Summarizer",
    "SummaryError",
    "SummaryLimitError",
    "SummaryRejectedError",
    "SummaryTimeoutError",
    "Text",
    "TextDelta",
    "TokenCounter",
    "Tool",
    "ToolCall",
    "ToolResult",
    "TranscriptError",
    "TurnfoldError",
    "Usage",
    "VersionConflict",
    "__version__",
    "make_compactor",
    "memory_store",
    "new_id",
    "open_session",
    "open_store",
    "text_message",
]

__version__ = "0.1.0"

_NAMES = {
    "turnfold.blocking": ("Blocking",),
    "turnfold.config.settings": ("Settings",),
    "turnfold.core.budget": ("Budget",),
    "turnfold.core.policy": ("Policy",),
    "turnfold.errors": (
        "ChainError",
        "ConfigError",
        "ContextOverflowError",
        "CorruptRowError",
        "DuplicateMessageError",
        "FloorError",
        "GroupsError",
        "InputError",
        "MissingExtraError",
        "NotFoundError",
        "PlanningError",
        "ProviderAuthError",
        "ProviderError",
        "ProviderOverflowError",
        "ProviderRateLimitError",
        "ProviderRequestError",
        "ProviderUnavailableError",
        "SchemaError",
        "StillTooLargeError",
        "StoreError",
        "StoreUnavailableError",
        "SummaryError",
        "SummaryLimitError",
        "SummaryRejectedError",
        "SummaryTimeoutError",
        "TranscriptError",
        "TurnfoldError",
        "VersionConflict",
    ),
    "turnfold.messages.log": (
        "Branch",
        "ConversationKey",
        "LogEntry",
    ),
    "turnfold.messages.model": (
        "Image",
        "Message",
        "Opaque",
        "Reasoning",
        "Text",
        "Tool",
        "ToolCall",
        "ToolResult",
        "Usage",
        "text_message",
    ),
    "turnfold.ports": (
        "ChatModel",
        "ChatRequest",
        "Clock",
        "Store",
        "Summarizer",
        "TextDelta",
        "TokenCounter",
    ),
    "turnfold.runtime.compact_runtime": (
        "CompactOptions",
        "CompactRuntime",
    ),
    "turnfold.runtime.compactor": ("Compactor",),
    "turnfold.runtime.decision": ("Prepared",),
    "turnfold.runtime.events": (
        "CompactionFailed",
        "CompactionFinished",
        "CompactionStarted",
    ),
    "turnfold.runtime.requests": ("CompactRequest",),
    "turnfold.session.agent": (
        "Agent",
        "RunnableTool",
    ),
    "turnfold.session.session": ("Session",),
    "turnfold.wiring": (
        "make_compactor",
        "memory_store",
        "new_id",
        "open_session",
        "open_store",
    ),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
