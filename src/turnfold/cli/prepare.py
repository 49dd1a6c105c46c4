"""`turnfold prepare`: run one request of a chat product from a file against a store, for debugging and other languages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from turnfold import wiring
from turnfold.cli import options
from turnfold.cli.scenario import ModelsFile, load_file
from turnfold.cli.terminal import bar, console, message_line, print_json, reason_list, run, visible
from turnfold.config.models import Models, check_actor, check_together, models_of
from turnfold.config.problems import Problem, missing_at, raise_all
from turnfold.config.request import Request, check_groups, request_of, request_schema
from turnfold.config.scenario import Scenario, given, scenario_of
from turnfold.errors import ConfigError, ContextOverflowError, InputError
from turnfold.runtime.decision import Prepared
from turnfold.transcripts.openai_chat import encode_tools
from turnfold.transcripts.openai_chat_messages import encode_messages

Document = dict[str, Any]

DEFAULT_LINE = "default"
"""The line of checkpoints of a request whose scenario is inside it and has no name."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("prepare")(prepare)


def prepare(
    request: Annotated[str | None, typer.Argument(help="The request, a JSON file; - for standard input.")] = None,
    scenario: Annotated[str | None, typer.Option("--scenario", help="The scenario's file (JSON or TOML).")] = None,
    models: ModelsFile = None,
    actor: Annotated[str | None, typer.Option("--actor", help="The model configuration that writes the reply.")] = None,
    store: options.Store = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of request files and end.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Prepare one request: what to send, what became of the checkpoint, and why."""
    if schema:
        return print_json(request_schema())
    if request is None:
        raise InputError("no request was given. Give a JSON file, or - for standard input; --schema prints its schema.")
    equipped = _equipped(load_file(request, request_of), scenario, models, actor)
    try:
        prepared = run(_prepared(equipped, store))
    except ContextOverflowError as error:
        if as_json:
            print_json(_overflow_document(error))
        raise
    if as_json:
        return print_json(prepared_document(prepared))
    return _print(prepared)


class Equipped(msgspec.Struct, frozen=True, kw_only=True):
    """A request with its scenario and models. `line` names the checkpoints, `folder` is where prompt presets are."""

    request: Request
    scenario: Scenario
    models: Models
    actor: str
    line: str
    folder: Path = Path()


def _equipped(request: Request, scenario_file: str | None, models_file: str | None, actor: str | None) -> Equipped:
    """Bring together what flags and file give; flags win. Raises ConfigError with every problem."""
    file = request.file
    scenario = load_file(scenario_file, scenario_of) if scenario_file else given(file.scenario_config, None)
    models = load_file(models_file, models_of) if models_file else given(file.model_configs, None)
    actor = actor or given(file.actor_model_config_id, None)
    if scenario is None or models is None or actor is None:
        raise ConfigError([str(problem) for problem in _left_out(scenario, models, actor)])
    raise_all([*check_together(scenario, models), *check_actor(actor, models), *check_groups(file, scenario)])
    line = Path(scenario_file).stem if scenario_file and scenario_file != "-" else DEFAULT_LINE
    return Equipped(
        request=request,
        scenario=scenario,
        models=models,
        actor=actor,
        line=given(file.scenario, line),
        folder=Path(models_file).parent if models_file else Path(),
    )


def _left_out(scenario: Scenario | None, models: Models | None, actor: str | None) -> Iterator[Problem]:
    if scenario is None:
        yield missing_at(("scenarioConfig",), "a request needs a scenario", "Add it, or give --scenario FILE.")
    if models is None:
        yield missing_at(("modelConfigs",), "a request needs model configurations", "Add them, or give --models FILE.")
    if actor is None:
        yield missing_at(
            ("actorModelConfigId",), "a request needs the model that replies", "Add it, or give --actor ID."
        )


async def _prepared(equipped: Equipped, store_file: str | None) -> Prepared:
    settings = options.settings_from(store=store_file).settings
    async with (
        wiring.open_store(settings) as store,
        wiring.open_compact_runtime(
            store,
            equipped.scenario,
            equipped.models,
            actor=equipped.actor,
            name=equipped.line,
            presets_in=equipped.folder,
        ) as runtime,
    ):
        return await runtime.prepare(wiring.compact_request(equipped.request))


def prepared_document(prepared: Prepared) -> Document:
    """Return the result as one JSON object, under camelCase names like the request's."""
    budget = prepared.budget
    return {
        "outcome": prepared.outcome,
        "persistence": prepared.persistence,
        "version": prepared.version,
        "trigger": prepared.trigger,
        "tokens": prepared.tokens,
        "tokensBefore": prepared.tokens_before,
        "counter": prepared.counter,
        "exact": prepared.exact,
        "budget": {
            "contextWindow": budget.context_window,
            "outputReserve": budget.output_reserve,
            "safetyMargin": budget.safety_margin,
            "inputBudget": budget.input_budget,
            "triggerLine": budget.trigger_line,
        },
        "calls": prepared.calls,
        "candidates": prepared.candidates,
        "milliseconds": prepared.milliseconds,
        "usage": None if prepared.usage is None else _usage(prepared),
        "summary": prepared.summary,
        "reasons": reason_list(prepared.reasons),
        "messages": encode_messages(prepared.messages),
        "messageIds": [message.id or None for message in prepared.messages],
        "tools": encode_tools(prepared.tools),
    }


def _usage(prepared: Prepared) -> Document:
    usage = prepared.usage
    if usage is None:
        return {}
    return {
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
    }


def _overflow_document(error: ContextOverflowError) -> Document:
    return {
        "outcome": "overflow",
        "inputBudget": error.input_budget,
        "tokens": error.tokens,
        "floor": error.floor,
        "parts": [{"name": name, "tokens": tokens} for name, tokens in error.parts],
        "error": str(error),
    }


def _print(prepared: Prepared) -> None:
    out, budget = console(), prepared.budget
    stored = "no checkpoint" if prepared.version is None else f"checkpoint {prepared.version}"
    out.print(f"{prepared.outcome}, {prepared.persistence}, {stored}")
    before = "" if prepared.tokens == prepared.tokens_before else f" (before: {prepared.tokens_before})"
    out.print(f"{bar(prepared.tokens, budget.input_budget)} {prepared.tokens} of {budget.input_budget} tokens{before}")
    out.print(
        f"{prepared.calls} calls, {prepared.candidates} candidates, {prepared.milliseconds} ms; "
        f"compacts above {budget.trigger_line}"
    )
    for reason in prepared.reasons:
        out.print(visible(f"- {reason.code}: {reason.detail}"), markup=False, soft_wrap=True)
    if prepared.summary:
        out.print("\nSummary:\n" + visible(prepared.summary), markup=False, soft_wrap=True)
    out.print("\nMessages:")
    for message in prepared.messages:
        out.print(visible(f"[{message.role}] {message_line(message)}"), markup=False, soft_wrap=True)
