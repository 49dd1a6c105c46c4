"""`turnfold doctor`: what is installed, what is set and where it came from, and whether the store can be used."""

from __future__ import annotations

import os
import platform
import time
from importlib import metadata, util
from pathlib import Path
from typing import Any

import msgspec
import typer

from turnfold import __version__, wiring
from turnfold.cli import options
from turnfold.cli.terminal import console, print_json, run, table
from turnfold.config.settings import Resolved
from turnfold.errors import NotFoundError, TurnfoldError
from turnfold.tokens import make_counter

EXTRAS = {"openai": "openai", "anthropic": "anthropic", "postgres": "psycopg", "service": "litestar"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)


def doctor(
    store: options.Store = None,
    tenant: options.Tenant = None,
    user: options.User = None,
    conversation: options.Conversation = None,
    window: options.Window = None,
    counter: options.Counter = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    as_json: options.AsJson = False,
) -> None:
    """Show versions, extras and every setting with its source. Exit code 1 when something would not work."""
    resolved = options.settings_from(
        store=store,
        tenant=tenant,
        user=user,
        conversation=conversation,
        context_window=window,
        counter=counter,
        model=model,
        base_url=base_url,
    )
    document = run(_examine(resolved))
    if as_json:
        print_json(document)
    else:
        _print(document)
    if document["problems"]:
        raise typer.Exit(1)


async def _examine(resolved: Resolved) -> dict[str, Any]:
    problems: list[str] = []
    settings = resolved.settings
    return {
        "version": __version__,
        "python": platform.python_version(),
        "sqlite": wiring.sqlite_version(),
        "extras": {name: _version(package) for name, package in EXTRAS.items()},
        "counter": _counter(resolved, problems),
        "budget": _budget(resolved, problems),
        "store": await _store(resolved, problems),
        "api_key": settings.key_variable in os.environ,
        "settings": {
            name: {"value": wiring.shown_address(value) if name == "store" else value, "source": resolved.sources[name]}
            for name, value in msgspec.to_builtins(settings).items()
        },
        "problems": problems,
    }


def _version(package: str) -> str | None:
    if util.find_spec(package) is None:
        return None
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


def _counter(resolved: Resolved, problems: list[str]) -> dict[str, Any]:
    started = time.perf_counter()
    try:
        counter = make_counter(resolved.settings.counter)
        counter.count_text("ready")
    except TurnfoldError as error:
        problems.append(str(error))
        return {"name": resolved.settings.counter, "ready": False}
    return {
        "name": counter.name,
        "exact": counter.exact,
        "ready": True,
        "load_ms": round(1000 * (time.perf_counter() - started)),
    }


def _budget(resolved: Resolved, problems: list[str]) -> dict[str, Any] | None:
    try:
        budget = resolved.settings.budget(exact=make_counter(resolved.settings.counter).exact)
    except TurnfoldError as error:
        problems.append(str(error))
        return None
    return {
        "context_window": budget.context_window,
        "output_reserve": budget.output_reserve,
        "safety_margin": budget.safety_margin,
        "input_budget": budget.input_budget,
        "trigger_line": budget.trigger_line,
    }


async def _store(resolved: Resolved, problems: list[str]) -> dict[str, Any]:
    address = resolved.settings.store
    described: dict[str, Any] = {"path": wiring.shown_address(address)}
    try:
        async with wiring.open_store(resolved.settings, read_only=True) as store:
            described["conversations"] = len(await store.conversations(tenant=resolved.settings.tenant, limit=1000))
        if not address.startswith(wiring.POSTGRES):
            described["bytes"] = _size(wiring.shown_address(address))
    except NotFoundError:
        described["note"] = "it is made at the first write"
    except TurnfoldError as error:
        problems.append(str(error))
    return described


def _size(path: str) -> int:
    return Path(path).stat().st_size


def _print(document: dict[str, Any]) -> None:
    out = console()
    out.print(f"turnfold {document['version']}, Python {document['python']}, SQLite {document['sqlite']}")
    extras = ", ".join(f"{name} {found or 'not installed'}" for name, found in document["extras"].items())
    out.print(f"extras: {extras}")
    out.print(f"counter: {document['counter']}", markup=False)
    out.print(f"budget: {document['budget']}", markup=False)
    out.print(f"store: {document['store']}", markup=False)
    rows = [(name, row["value"], row["source"]) for name, row in document["settings"].items()]
    out.print(table("Settings", ("name", "value", "source"), [tuple(map(str, row)) for row in rows]))
    for problem in document["problems"]:
        out.print(f"problem: {problem}", markup=False, style="bold")
