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


def agree(document: Any, check: Callable[[Any], Any], schema: dict[str, Any]) -> bool:
    """Whether check and schema judge a document alike."""
    return bool(Validator(schema).is_valid(document)) == (not check(document))


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
    struct, check, schema = DOCUMENTS[name]
    document = data.draw(documents(struct))
    assert agree(document, check, schema), [str(problem) for problem in check(document)]


@settings(max_examples=150)
@given(altered(SEED["compact"], Compact))
def test_schema_and_check_agree_on_compaction(compact: Any) -> None:
    """The same, for the block with the most rules."""
    document = {"compact": compact}
    assert agree(document, check_scenario, scenario_schema()), [str(problem) for problem in check_scenario(document)]


@settings(max_examples=150)
@given(st.sampled_from(list(MODELS["models"].values())).flatmap(lambda config: altered(config, ModelConfig)))
def test_schema_and_check_agree_on_models(config: Any) -> None:
    """The same, for one model configuration."""
    document = {"models": {"m": config}}
    assert agree(document, check_models, models_schema()), [str(problem) for problem in check_models(document)]


def test_the_schemas_accept_the_examples() -> None:
    """The seed's block and a registry are valid under their schemas."""
    assert Validator(scenario_schema()).is_valid(SEED)
    assert Validator(models_schema()).is_valid(MODELS)


def test_the_schema_knows_the_counters() -> None:
    """A counter that can be made can be configured, and no other."""
    counter = models_schema()["$defs"]["ModelConfig"]["properties"]["counter"]
    assert set(counter["enum"]) == set(COUNTERS)
