"""`turnfold scenario`: check a scenario file, and print the JSON Schemas that editors and other languages use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from turnfold import wiring
from turnfold.cli.files import chunks
from turnfold.cli.terminal import console, print_json, table, visible
from turnfold.config.documents import read_document, syntax_of
from turnfold.config.models import Models, check_models, check_together, models_of, models_schema
from turnfold.config.problems import Problem
from turnfold.config.request import request_schema
from turnfold.config.scenario import Scenario, check_scenario, scenario_of, scenario_schema
from turnfold.errors import ConfigError, InputError

T = TypeVar("T")
Document = dict[str, Any]

ModelsFile = Annotated[str | None, typer.Option("--models", help="The file of model configurations (JSON or TOML).")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Check scenario files and print their schemas.", no_args_is_help=True)
    group.command("check")(check)
    group.command("schema")(schema)
    app.add_typer(group, name="scenario")


def check(
    file: Annotated[str, typer.Argument(help="The scenario, JSON or TOML; - for standard input.")],
    models: ModelsFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Check a scenario and say all that is wrong with it. Exit code 1 when something is, 2 when a file cannot be read."""
    document = _checked(file, models)
    if as_json:
        print_json(document)
    else:
        _print(document)
    if document["problems"]:
        raise typer.Exit(1)


def schema(
    request: Annotated[bool, typer.Option("--request", help="Of request files, for `turnfold prepare`.")] = False,
    models: Annotated[bool, typer.Option("--models", help="Of files of model configurations.")] = False,
) -> None:
    """Print the JSON Schema of scenarios."""
    if request and models:
        raise InputError("--request and --models ask for two documents. Give one of them.")
    print_json(request_schema() if request else models_schema() if models else scenario_schema())


def read_file(name: str) -> Any:
    """Return the value in a JSON or TOML file. Raises ConfigError naming the file."""
    return read_document(b"".join(chunks(name)), syntax_of(name), name=name)


def load_file(name: str, convert: Callable[[Any], T]) -> T:
    """Return what `convert` makes of the value in a file. Raises ConfigError with every problem, the file's name before each."""
    value = read_file(name)
    try:
        return convert(value)
    except ConfigError as error:
        raise ConfigError([f"{name}: {problem}" for problem in error.problems]) from None


def _checked(file: str, models_file: str | None) -> Document:
    value = read_file(file)
    problems = [(file, problem) for problem in check_scenario(value)]
    scenario = None if problems else scenario_of(value)
    if models_file is not None:
        problems += _with_models(file, scenario, models_file)
    return {
        "file": file,
        "models": models_file,
        "problems": [{"file": name, **problem.record()} for name, problem in problems],
        "effective": None if scenario is None or problems else _effective(scenario),
    }


def _with_models(file: str, scenario: Scenario | None, models_file: str) -> list[tuple[str, Problem]]:
    """Return the problems of the model configurations, and those of the two files together."""
    value = read_file(models_file)
    problems = [(models_file, problem) for problem in check_models(value)]
    if problems:
        return problems
    models = models_of(value)
    problems = [(models_file, problem) for problem in _preset_problems(models, Path(models_file).parent)]
    return problems + [(file, problem) for problem in (check_together(scenario, models) if scenario else ())]


def _preset_problems(models: Models, folder: Path) -> list[Problem]:
    """What is wrong with the prompt presets that the configurations name."""
    problems = []
    for model_id, config in models.models.items():
        try:
            wiring.prompts_of(config, folder)
        except InputError as error:
            place = ("models", model_id, "promptPreset")
            problems.append(Problem(steps=place, value=config.preset, reason=str(error), cure="Correct the preset."))
    return problems


def _effective(scenario: Scenario) -> Document:
    """What the scenario means, defaults filled in, under the names of its own fields."""
    policy = scenario.policy()
    return {
        "enabled": scenario.enabled,
        "mode": scenario.mode,
        "boundaryMode": "explicit_groups" if scenario.explicit_groups else "selected_turns",
        "compactorModelConfigId": scenario.compactor_id,
        "triggerRatio": scenario.trigger_ratio,
        "keepLastCanonicalGroups": policy.keep_last_groups,
        "checkpointMutationTimeoutMs": scenario.mutation_timeout_ms,
        "safetyMarginTokens": scenario.safety_margin,
        "maxSummaryTokens": policy.max_summary_tokens,
        "inputProtocol": policy.input_protocol,
        "outputFormat": policy.output_format,
        "lengthPolicy": policy.length_policy,
        "executionPolicy": policy.planner,
        "segmentContentTokens": policy.segment_content_tokens,
        "minGenerationTokens": policy.min_generation_tokens,
        "maxCandidateAttempts": policy.max_candidate_attempts,
        "maxModelCalls": policy.max_model_calls,
        "maxCompactionMs": policy.max_compaction_ms,
    }


def _print(document: Document) -> None:
    out = console()
    for problem in document["problems"]:
        place = f"{problem['file']}: {problem['path'] or 'the document'}"
        out.print(
            visible(f"{place}: {problem['value']}: {problem['reason']}. {problem['cure']}"),
            markup=False,
            soft_wrap=True,
        )
    if document["problems"]:
        return
    rows = [(name, "" if value is None else str(value)) for name, value in document["effective"].items()]
    out.print(table(f"{document['file']}: no problems", ("field", "in force"), rows))
