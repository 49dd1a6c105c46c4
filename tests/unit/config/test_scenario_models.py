"""Model configurations: what each provider needs and takes, and how a scenario and a registry fit together."""

from typing import Any

import pytest

from tests.unit.config.scenario_documents import MODELS, SEED, seed_with
from turnfold.config.models import check_actor, check_models, check_together, models_of
from turnfold.config.scenario import scenario_of


def said(**fields: Any) -> dict[str, str]:
    """The problems of a registry that holds one model, by path."""
    return {problem.path: str(problem) for problem in check_models({"models": {"m": fields}})}


def test_the_examples_are_right() -> None:
    """One model of each kind, whole."""
    assert check_models(MODELS) == ()
    config = models_of(MODELS).models["actor"]
    assert (config.model, config.context_window, config.max_output_tokens) == ("gpt-4o-mini", 8192, 2048)
    assert (config.api_key_env, config.preset, config.counter_name) == ("OPENAI_API_KEY", "default", "bpe")


@pytest.mark.parametrize("provider", ["openai_compatible", "anthropic"])
def test_an_endpoint_needs_model_and_window(provider: str) -> None:
    """Both are said, and nothing else is required."""
    assert list(said(provider=provider)) == ["models.m.model", "models.m.contextWindow"]
    assert said(provider=provider, model="x", contextWindow=8192) == {}


SCENARIO_FIELDS = [
    "profile",
    "inputProtocol",
    "outputFormat",
    "lengthPolicy",
    "executionPolicy",
    "recursive",
    "reliability",
    "triggerRatio",
    "maxModelCalls",
    "contextGovernance",
    "compact",
]


@pytest.mark.parametrize("field", SCENARIO_FIELDS)
def test_how_to_compact_is_the_scenarios_business(field: str) -> None:
    """A field of the scenario is refused in a model configuration, with where it belongs."""
    problems = said(provider="extractive", **{field: "x"})
    assert list(problems) == [f"models.m.{field}"]
    assert "belongs to the scenario" in problems[f"models.m.{field}"]


@pytest.mark.parametrize("field", ["apiKey", "key", "api_key"])
def test_a_key_is_never_written_down(field: str) -> None:
    """A key in the file is refused, with what to write instead."""
    assert (
        "apiKeyEnv"
        in said(provider="anthropic", model="x", contextWindow=1, **{field: "sk-secret"})[f"models.m.{field}"]
    )


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"provider": "openai"}, "models.m.provider"),
        ({}, "models.m.provider"),
        ({"provider": "scripted"}, "models.m.replies"),
        ({"provider": "scripted", "replies": []}, "models.m.replies"),
        ({"provider": "scripted", "replies": ["a", 1]}, "models.m.replies[1]"),
        ({"provider": "scripted", "replies": ["a"], "baseUrl": "http://x"}, "models.m.baseUrl"),
        ({"provider": "extractive", "replies": ["a"]}, "models.m.replies"),
        ({"provider": "extractive", "contextWindow": 8192}, "models.m.contextWindow"),
        ({"provider": "anthropic", "model": "x", "contextWindow": 0}, "models.m.contextWindow"),
        ({"provider": "anthropic", "model": "x", "contextWindow": 1, "baseUrl": "ftp://x"}, "models.m.baseUrl"),
        ({"provider": "anthropic", "model": "x", "contextWindow": 1, "apiKeyEnv": "sk-1 2"}, "models.m.apiKeyEnv"),
        ({"provider": "anthropic", "model": "x", "contextWindow": 1, "counter": "tiktoken"}, "models.m.counter"),
        ({"provider": "extractive", "modle": "x"}, "models.m.modle"),
    ],
)
def test_each_broken_rule_is_said_at_its_path(fields: dict[str, Any], path: str) -> None:
    """One mistake gives one problem."""
    assert list(said(**fields)) == [path]


def test_an_id_that_is_no_word_is_quoted() -> None:
    """Any id can be named in a path."""
    (problem,) = check_models({"models": {"a.b c": {"provider": "x"}}})
    assert problem.path == 'models["a.b c"].provider'


def test_the_summarizer_must_exist() -> None:
    """An id that is not in the registry is said with the nearest one."""
    scenario = scenario_of(seed_with("compact", "compactorModelConfigId", value="RP-Harness-Compact-AutoMemory-v0"))
    (problem,) = check_together(scenario, models_of(MODELS))
    assert problem.path == "compact.compactorModelConfigId"
    assert "'RP-Harness-Compact-AutoMemory-v0-Native'" in problem.cure
    assert list(check_together(scenario_of(SEED), models_of(MODELS))) == []


def test_a_summarizer_without_room_is_said() -> None:
    """A window that cannot hold the answer alone would skip every candidate without a word."""
    scenario = scenario_of(seed_with("compact", "reliability", "minGenerationTokens", value=8192))
    (problem,) = check_together(scenario, models_of(MODELS))
    assert problem.path == "compact.reliability.minGenerationTokens"


@pytest.mark.parametrize(
    ("actor", "path"),
    [
        ("acter", "actorModelConfigId"),
        ("offline", "actorModelConfigId"),
        ("windowless", "models.windowless.contextWindow"),
    ],
)
def test_an_actor_answers_and_has_a_window(actor: str, path: str) -> None:
    """The budget of every request is computed from the actor's window."""
    models = models_of({"models": {**MODELS["models"], "windowless": {"provider": "scripted", "replies": ["x"]}}})
    assert [problem.path for problem in check_actor(actor, models)] == [path]
    assert list(check_actor("actor", models)) == []
