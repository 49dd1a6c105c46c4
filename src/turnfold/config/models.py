"""Model configurations: which models there are, how each is reached, and which prompts it is asked with (SPEC §11).

How a history is compacted is the scenario's business, so its fields are refused here. Keys are never written down: a
configuration names the environment variable that holds one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from turnfold.config.checking import Checker, RuleTable
from turnfold.config.documents import Syntax, read_document
from turnfold.config.problems import Path, Problem, missing_at, nearest_name, problem_at
from turnfold.config.rules import Rule, absent, among, other_than, present
from turnfold.config.scenario import Compact, Count, Id, Recursive, Reliability, Scenario, given
from turnfold.config.schema import json_schema

Provider = Literal["openai_compatible", "anthropic", "scripted", "extractive"]
DEFAULT_PRESET: Final = "default"
DEFAULT_COUNTER: Final = "bpe"


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One model. `extractive` is the deterministic summarizer, which needs none; `scripted` gives fixed replies, offline."""

    provider: Annotated[Provider, Meta(description="How the model is reached.")]
    model: Annotated[Id, Meta(description="The model's name as its endpoint knows it.")] | UnsetType = UNSET
    context_window: (
        Annotated[Count, Meta(description="The model's window in tokens, prompt and output together.")] | UnsetType
    ) = UNSET
    max_output_tokens: (
        Annotated[Count, Meta(description="The configured limit of one reply in tokens. An actor reserves so much.")]
        | UnsetType
    ) = UNSET
    base_url: (
        Annotated[
            str,
            Meta(
                pattern=r"^https?://[^\s/]+",
                description="The endpoint's base URL. Not given: the provider's own.",
                extra={"example": '"http://localhost:11434/v1"'},
            ),
        ]
        | UnsetType
    ) = UNSET
    api_key_env: (
        Annotated[
            str,
            Meta(
                pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
                max_length=200,
                description="The environment variable that holds the key. Not given: none is sent.",
                extra={"example": '"OPENAI_API_KEY"'},
            ),
        ]
        | UnsetType
    ) = UNSET
    prompt_preset: (
        Annotated[
            Id,
            Meta(
                description="The prompts of a summarizer: default, or a folder of files, relative to this one.",
                extra_json_schema={"default": DEFAULT_PRESET},
            ),
        ]
        | UnsetType
    ) = UNSET
    counter: (
        Annotated[
            Literal["bpe", "o200k_base", "cl100k_base", "script_aware", "chars4"],
            Meta(
                description="How an actor's tokens are counted.",
                extra_json_schema={"default": DEFAULT_COUNTER},
            ),
        ]
        | UnsetType
    ) = UNSET
    replies: (
        Annotated[
            tuple[str, ...],
            Meta(min_length=1, description="What a scripted model says, one a call; the last one again and again."),
        ]
        | UnsetType
    ) = UNSET

    @property
    def preset(self) -> str:
        """The prompt preset."""
        return given(self.prompt_preset, DEFAULT_PRESET)

    @property
    def counter_name(self) -> str:
        """The counter's name."""
        return given(self.counter, DEFAULT_COUNTER)


class Models(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A registry of model configurations by id."""

    models: Annotated[dict[Id, ModelConfig], Meta(description="Model configurations by id.")]

    def find(self, model_id: str, path: Path) -> ModelConfig | Problem:
        """Return the configuration of an id, or the problem of the field at `path` that gives it."""
        if model_id in self.models:
            return self.models[model_id]
        near = nearest_name(model_id, self.models)
        cure = f"Did you mean {near!r}?" if near else f"There are: {', '.join(self.models) or 'none'}."
        return problem_at(path, model_id, "no model configuration has this id", cure)


_ENDPOINT = among("provider", values=("openai_compatible", "anthropic"))
_EXTRACTIVE = among("provider", values=("extractive",))
_NOT_SCRIPTED = other_than("provider", values=("scripted",))

RULES: Final[RuleTable] = {
    ModelConfig: (
        *(
            Rule(when=(_ENDPOINT,), then=present(field), reason=reason, cure=cure)
            for field, reason, cure in (
                ("model", "an endpoint must be told which model", "Give the model's name."),
                ("contextWindow", "every limit is computed from it", "Give the model's window in tokens."),
            )
        ),
        Rule(
            when=(among("provider", values=("scripted",)),),
            then=present("replies"),
            reason="a scripted model must be told what to say",
            cure="Give a list of replies.",
        ),
        Rule(
            when=(_NOT_SCRIPTED,),
            then=absent("replies"),
            reason="only a scripted model is told what to say",
            cure='Remove it, or use "provider": "scripted".',
        ),
        *(
            Rule(
                when=(_EXTRACTIVE,),
                then=absent(field),
                reason="the extractive summarizer calls no model",
                cure="Remove it, or use another provider.",
            )
            for field in (
                "model",
                "baseUrl",
                "apiKeyEnv",
                "promptPreset",
                "maxOutputTokens",
                "contextWindow",
                "counter",
            )
        ),
        *(
            Rule(
                when=(among("provider", values=("scripted",)),),
                then=absent(field),
                reason="a scripted model has no endpoint",
                cure="Remove it, or use another provider.",
            )
            for field in ("baseUrl", "apiKeyEnv")
        ),
    ),
}
"""The rules between fields of a model configuration."""

_SCENARIO_FIELDS: Final = frozenset(
    field.encode_name for part in (Scenario, Compact, Reliability, Recursive) for field in msgspec.structs.fields(part)
)


def explain_unknown(owner: type, name: str) -> str | None:
    """Return what to do about an unknown field that is known elsewhere."""
    if owner is ModelConfig and name in _SCENARIO_FIELDS:
        return "It belongs to the scenario, which decides how histories are compacted: move it there."
    if owner is ModelConfig and name in ("apiKey", "key", "api_key"):
        return 'Keys are not written down: put it into the environment and give the variable\'s name as "apiKeyEnv".'
    return None


_CHECKER: Final = Checker(rules=RULES, cure=explain_unknown)


def check_models(value: Any) -> tuple[Problem, ...]:
    """Return every problem of a registry given as plain values."""
    return _CHECKER.check(value, Models)


def models_of(value: Any) -> Models:
    """Return the registry of plain values. Raises ConfigError with every problem."""
    return _CHECKER.convert(value, Models)


def load_models(data: bytes, syntax: Syntax = "JSON", *, name: str = "the models") -> Models:
    """Return the registry in a file's bytes; `name` is the file's, for messages. Raises ConfigError."""
    return models_of(read_document(data, syntax, name=name))


def models_schema() -> dict[str, Any]:
    """Return the JSON Schema of registries."""
    return json_schema(Models, RULES, title="turnfold model configurations")


def check_together(scenario: Scenario, models: Models) -> Iterator[Problem]:
    """Yield what is wrong with a scenario beside a registry: its summarizer must exist and have room to answer."""
    path = ("compact", "compactorModelConfigId")
    if scenario.compactor_id is None:
        return
    found = models.find(scenario.compactor_id, path)
    if isinstance(found, Problem):
        yield found
        return
    room = scenario.policy().min_generation_tokens
    if found.context_window is not UNSET and room >= found.context_window:
        reason = f"the summarizer's whole window is {found.context_window} tokens, so no candidate could be tried"
        yield problem_at(("compact", "reliability", "minGenerationTokens"), room, reason, "Lower it.")


def check_actor(actor_id: str, models: Models, path: Path = ("actorModelConfigId",)) -> Iterator[Problem]:
    """Yield what keeps a model configuration from answering requests: it must exist and have a window."""
    found = models.find(actor_id, path)
    if isinstance(found, Problem):
        yield found
    elif found.provider == "extractive":
        reason = "the extractive summarizer answers no requests"
        yield problem_at(path, actor_id, reason, "Give the configuration of the model that writes the reply.")
    elif found.context_window is UNSET:
        reason = "the budget of a request is computed from it"
        yield missing_at(("models", actor_id, "contextWindow"), reason, "Give the model's window in tokens.")
