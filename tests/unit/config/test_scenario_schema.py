"""The JSON Schemas are valid, and agree with the checks on everything that a schema can say."""

from collections.abc import Callable
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.config.scenario_documents import MODELS, SEED, altered, documents
from turnfold.config.models import ModelConfig, Models, check_models, models_schema
from turnfold.config.request import RequestFile, check_request, request_schema
from turnfold.config.scenario import Compact, Scenario, check_scenario, scenario_schema
from turnfold.tokens import COUNTERS

Validator = jsonschema.Draft202012Validator
DOCUMENTS: dict[str, tuple[type[msgspec.Struct], Callable[[Any], Any], dict[str, Any]]] = {
    "scenario": (Scenario, check_scenario, scenario_schema()),
    "models": (Models, check_models, models_schema()),
    "request": (RequestFile, check_request, request_schema()),
}


VALIDATORS = {name: Validator(schema) for name, (_, _, schema) in DOCUMENTS.items()}


def complaints(name: str, document: Any) -> list[str]:
    """What the check says of a document; fails where the schema judges it otherwise."""
    problems = [str(problem) for problem in DOCUMENTS[name][1](document)]
    assert bool(VALIDATORS[name].is_valid(document)) == (not problems), problems
    return problems


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_is_valid(name: str) -> None:
    """The 2020-12 meta schema accepts each schema, and each says that it is one."""
    schema = DOCUMENTS[name][2]
    Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=40)
@given(st.data())
@pytest.mark.parametrize("name", DOCUMENTS)
def test_schema_and_check_agree(name: str, data: st.DataObject) -> None:
    """An editor that uses the schema complains of exactly the documents that turnfold refuses."""
    complaints(name, data.draw(documents(DOCUMENTS[name][0])))


@settings(max_examples=120)
@given(altered(SEED["compact"], Compact))
def test_schema_and_check_agree_on_compaction(compact: Any) -> None:
    """The same, near the seed's block, where most documents are right or have one mistake."""
    complaints("scenario", {"compact": compact})


@settings(max_examples=120)
@given(st.sampled_from(list(MODELS["models"].values())).flatmap(lambda config: altered(config, ModelConfig)))
def test_schema_and_check_agree_on_models(config: Any) -> None:
    """The same, near model configurations that are right."""
    complaints("models", {"models": {"m": config}})


def test_the_schemas_accept_the_examples() -> None:
    """The seed's block and a registry are valid under their schemas."""
    assert complaints("scenario", SEED) == []
    assert complaints("models", MODELS) == []


def test_the_schema_knows_the_counters() -> None:
    """A counter that can be made can be configured, and no other."""
    counter = models_schema()["$defs"]["ModelConfig"]["properties"]["counter"]
    assert set(counter["enum"]) == set(COUNTERS)
