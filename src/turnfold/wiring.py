"""The only composition root: settings in, working objects out. Optional packages are imported here and nowhere earlier."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

from msgspec.structs import replace

from turnfold.config.models import ModelConfig, Models, check_actor, check_together
from turnfold.config.problems import missing_at, raise_all
from turnfold.config.scenario import Scenario, given
from turnfold.core.budget import session_budget
from turnfold.core.policy import Policy
from turnfold.errors import ConfigError
from turnfold.messages.log import ConversationKey
from turnfold.runtime.compact_runtime import CompactOptions, CompactRuntime, CompactStore
from turnfold.runtime.compactor import Compactor
from turnfold.runtime.requests import CompactRequest
from turnfold.session import Session
from turnfold.tokens import make_counter

if TYPE_CHECKING:
    from turnfold.config.request import Request
    from turnfold.config.settings import Settings
    from turnfold.messages.model import Message, Tool
    from turnfold.ports import ChatModel, ChatRequest, Clock, OpenableStore, Store, Summarizer, TokenCounter
    from turnfold.runtime.events import Listener
    from turnfold.session.prompting import PromptSource
    from turnfold.session.reminding import ReminderProvider
    from turnfold.stores.memory import MemoryStore
    from turnfold.stores.postgres import PostgresStore
    from turnfold.summarizers.model_backed import ModelBackedSummarizer
    from turnfold.summarizers.prompt_files import Prompts


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        """Milliseconds of UTC wall time since 1970."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        """Milliseconds of a clock that never goes back."""
        return time.monotonic_ns() / 1_000_000


def new_id() -> str:
    """Return a new id: sortable by time (ms, base 16), then 64 random bits."""
    return f"{time.time_ns() // 1_000_000:012x}-{secrets.token_hex(8)}"


def new_frame() -> str:
    """Return an unguessable word that marks a transcript's ends."""
    return secrets.token_hex(8)


POSTGRES = ("postgresql://", "postgres://")
"""How a store's address begins when it is a PostgreSQL database."""


def open_store(settings: Settings, *, read_only: bool = False) -> OpenableStore:
    """Return the store of the settings: a PostgreSQL database where an address is given, else a SQLite file.

    The file's folder and the schema are made as needed, unless the store is only to be read. Raises MissingExtraError when
    the driver is not installed.
    """
    if settings.store.startswith(POSTGRES):
        return postgres_store(settings.store, migrate=not read_only)
    from turnfold.stores.sqlite import SqliteStore

    path = Path(settings.store).expanduser()
    if not read_only:
        _make_folder(path.parent)
    return SqliteStore(path, read_only=read_only)


def postgres_store(address: str, *, migrate: bool) -> PostgresStore:
    """Return the store in a PostgreSQL database. `schema=NAME` in the address names its schema (default `turnfold`)."""
    from turnfold.stores.postgres import PostgresStore

    parts = urlsplit(address)
    query = parse_qs(parts.query, keep_blank_values=True)
    schema = query.pop("schema", ["turnfold"])[-1]
    return PostgresStore(urlunsplit(parts._replace(query=urlencode(query, doseq=True))), schema=schema, migrate=migrate)


def shown_address(address: str) -> str:
    """Return a store's address as it may be shown: a file's whole path, a database without user, password and options."""
    if not address.startswith(POSTGRES):
        return str(Path(address).expanduser())
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _make_folder(folder: Path) -> None:
    from turnfold.errors import StoreUnavailableError

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailableError("read_only", f"the folder {folder} cannot be made ({error.strerror})") from error


def sqlite_version() -> str:
    """Return the version of the SQLite library that the embedded store uses."""
    from turnfold.stores.sqlite import LIBRARY_VERSION

    return LIBRARY_VERSION


def memory_store() -> MemoryStore:
    """Return a store that lives as long as the process."""
    from turnfold.stores.memory import MemoryStore

    return MemoryStore()


def conversation_key(settings: Settings) -> ConversationKey:
    """Return the key of the conversation that the settings name."""
    return ConversationKey(tenant=settings.tenant, user=settings.user, conversation_id=settings.conversation)


def chat_model(settings: Settings, environment: Mapping[str, str] = os.environ) -> ChatModel:
    """Return the configured chat model behind its provider's API, or without a model one that repeats.

    Raises MissingExtraError when the SDK is not installed.
    """
    if settings.model is None:
        return echo_model()
    from turnfold.providers import provider_class

    options = {"base_url": settings.base_url} if settings.base_url else {}
    model: ChatModel = provider_class(settings.provider)(
        settings.model,
        api_key=environment.get(settings.key_variable),
        context_window=settings.context_window,
        max_output_tokens=settings.max_output,
        **options,
    )
    return model


def echo_model() -> ChatModel:
    """Return the model that stands in when none is configured: it repeats what it was told, so that all else can be tried."""
    from turnfold.messages.model import text_message
    from turnfold.providers.scripted import ScriptedModel

    def echo(request: ChatRequest) -> Message:
        told = next((m.text for m in reversed(request.messages) if m.role == "user" and m.kind == "message"), "")
        return text_message(new_id(), "assistant", f"You said: {told}")

    return ScriptedModel(echo, name="echo")


def fallback_summarizer(counter: TokenCounter) -> Summarizer:
    """Return the deterministic summarizer."""
    from turnfold.summarizers.extractive import ExtractiveSummarizer

    return ExtractiveSummarizer(counter.count_text)


def summarizer(settings: Settings, counter: TokenCounter, model: ChatModel | None = None) -> Summarizer:
    """Return the configured summarizer. Raises ConfigError when it needs a model and none is configured."""
    if settings.summarizer == "extractive":
        return fallback_summarizer(counter)
    if model is None and settings.model is None:
        raise ConfigError(["summarizer: 'model' needs a model. Give --model or TURNFOLD_MODEL, or use 'extractive'."])
    from turnfold.summarizers.model_backed import ModelBackedSummarizer

    return ModelBackedSummarizer(model or chat_model(settings), counter)


def make_compactor(
    settings: Settings, *, policy: Policy | None = None, model: ChatModel | None = None, using: Summarizer | None = None
) -> Compactor:
    """Return the compactor of the settings; `using` replaces the configured summarizer."""
    counter = make_counter(settings.counter)
    return Compactor(
        counter=counter,
        summarizer=using or summarizer(settings, counter, model),
        fallback=fallback_summarizer(counter),
        policy=policy or settings.policy(),
        clock=SystemClock(),
        new_frame=new_frame,
    )


def open_session(
    store: Store,
    settings: Settings,
    *,
    compactor: Compactor | None = None,
    model: ChatModel | None = None,
    system: str | PromptSource | None = None,
    tools: tuple[Tool, ...] = (),
    branch: str | None = None,
    listener: Listener | None = None,
    reminders: Mapping[str, ReminderProvider] | None = None,
) -> Session:
    """Return the session of the settings' conversation, to be entered with `async with`."""
    compactor = compactor or make_compactor(settings, model=model)
    return Session(
        store,
        conversation_key(settings),
        compactor,
        budget=settings.budget(exact=compactor.counter.exact),
        new_id=new_id,
        system=system_prompt(settings) if system is None else system,
        tools=tools,
        model=model.name if model else settings.model,
        branch=branch,
        listener=listener,
        reminders=configured_reminders(settings) if reminders is None else reminders,
    )


def system_prompt(settings: Settings) -> str | PromptSource:
    """Return the configured system prompt: a text, or where files are named a source that reads them."""
    if settings.system_file is None and settings.memory is None:
        return settings.system
    from turnfold.session.prompt_files import FilePrompt

    return FilePrompt(settings.system, base_file=_path(settings.system_file), memory=_path(settings.memory))


def configured_reminders(settings: Settings) -> dict[str, ReminderProvider]:
    """Return one reminder for each file in the configured folder."""
    folder = _path(settings.reminders)
    if folder is None:
        return {}
    from turnfold.session.prompt_files import file_reminders

    return file_reminders(folder)


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name).expanduser()


def prompts_of(config: ModelConfig, folder: Path = Path()) -> Prompts:
    """Return the prompts of a model configuration; a preset's folder is relative to `folder`, where the file stands.

    Raises NotFoundError for no such folder, ConfigError with every problem of its files.
    """
    from turnfold.summarizers.prompt_files import DEFAULT_PRESET, load_prompts

    return load_prompts(config.preset if config.preset == DEFAULT_PRESET else folder / config.preset)


def configured_model(models: Models, model_id: str, environment: Mapping[str, str] = os.environ) -> ChatModel:
    """Return the chat model of a configuration, its key taken from the variable that it names.

    Raises ConfigError when that variable is not set, MissingExtraError when the provider's SDK is not installed.
    """
    from turnfold.providers import provider_class
    from turnfold.providers.scripted import ScriptedModel

    config = models.models[model_id]
    limits: dict[str, Any] = {
        "context_window": given(config.context_window, None),
        "max_output_tokens": given(config.max_output_tokens, None),
    }
    name = given(config.model, model_id)
    if config.provider == "scripted":
        replies = given(config.replies, ())
        return ScriptedModel(chain(replies, repeat(replies[-1])), name=name, **limits)
    variable = given(config.api_key_env, None)
    if variable is not None and variable not in environment:
        reason = f"the environment has no variable {variable}"
        raise_all([missing_at(("models", model_id, "apiKeyEnv"), reason, "Set it to the key, or remove the field.")])
    address = {"base_url": url} if (url := given(config.base_url, None)) else {}
    provider = provider_class("openai" if config.provider == "openai_compatible" else config.provider)
    model: ChatModel = provider(name, api_key=environment.get(variable or ""), **limits, **address)
    return model


@asynccontextmanager
async def open_compact_runtime(
    store: CompactStore,
    scenario: Scenario,
    models: Models,
    *,
    actor: str,
    name: str = "default",
    presets_in: Path = Path(),
    environment: Mapping[str, str] = os.environ,
    clock: Clock | None = None,
) -> AsyncIterator[CompactRuntime]:
    """Open the Compact runtime of a scenario, its summarizer's connections included.

    `actor` is the id of the model that writes the replies: the window, the output reserve and the counter are its own.
    `name` is the line of checkpoints, `presets_in` the folder that prompt presets are relative to. Raises ConfigError with
    every problem of scenario and models together.
    """
    raise_all([*check_together(scenario, models), *check_actor(actor, models)])
    counter = make_counter(models.models[actor].counter_name)
    options = compact_options(scenario, models.models[actor], name=name, exact=counter.exact)
    async with AsyncExitStack() as stack:
        summarizer, preset_hash = fallback_summarizer(counter), ""
        if scenario.enabled and (written_by := model_backed(scenario, models, counter, presets_in, environment)):
            summarizer, preset_hash = written_by, written_by.prompts.hash
            if isinstance(written_by.model, AbstractAsyncContextManager):
                await stack.enter_async_context(written_by.model)
        compactor = Compactor(
            counter=counter,
            summarizer=summarizer,
            fallback=fallback_summarizer(counter),
            policy=scenario.policy(),
            clock=clock or SystemClock(),
            new_frame=new_frame,
        )
        yield CompactRuntime(store, compactor, replace(options, preset_hash=preset_hash), new_id=new_id)


def model_backed(
    scenario: Scenario, models: Models, counter: TokenCounter, presets_in: Path, environment: Mapping[str, str]
) -> ModelBackedSummarizer | None:
    """Return the summarizer of a scenario, None for the extractive one."""
    from turnfold.summarizers.model_backed import ModelBackedSummarizer

    config = models.models[scenario.compactor_id or ""]
    if config.provider == "extractive":
        return None
    model = configured_model(models, scenario.compactor_id or "", environment)
    return ModelBackedSummarizer(model, counter, prompts=prompts_of(config, presets_in))


def compact_options(scenario: Scenario, actor: ModelConfig, *, name: str, exact: bool) -> CompactOptions:
    """Return a scenario's part of a runtime; the window is the actor's. Raises ConfigError when the budget leaves nothing."""
    budget = session_budget(
        given(actor.context_window, 0),
        exact=exact,
        max_output=given(actor.max_output_tokens, None),
        safety_margin=scenario.safety_margin,
        trigger_ratio=scenario.trigger_ratio,
    )
    return CompactOptions(
        scenario=name,
        context_window=budget.context_window,
        output_reserve=budget.output_reserve,
        safety_margin=budget.safety_margin,
        trigger_ratio=budget.trigger_ratio,
        enabled=scenario.enabled,
        mutation_timeout_ms=scenario.mutation_timeout_ms,
        mode=scenario.mode,
        explicit_groups=scenario.explicit_groups,
    )


def compact_request(request: Request) -> CompactRequest:
    """Return a request file's request."""
    file = request.file
    return CompactRequest(
        conversation_id=file.conversation_id,
        user=given(file.user, ""),
        tenant=given(file.tenant, ""),
        request_type=given(file.request_type, "chat"),
        role_id=given(file.role_id, ""),
        persona=given(file.persona, ""),
        fixed_prompt=request.fixed_prompt,
        tools=request.tools,
        history=request.history,
        incoming=request.incoming,
        injected=request.injected,
        max_output=given(file.max_output, None),
        groups=given(file.groups, None),
        checkpoint_mutation_allowed=given(file.checkpoint_mutation_allowed, None),
    )
