"""`turnfold prompt`: the system prompt in force, and what the next compaction will make of it."""

from __future__ import annotations

from difflib import unified_diff
from typing import Any

import typer

from turnfold.cli import options
from turnfold.cli.reading import session_of
from turnfold.cli.terminal import console, print_json, run, visible
from turnfold.core.system_prompt import CompiledPrompt

prompt = typer.Typer(name="prompt", help="The system prompt: base text and memory files.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(prompt)


@prompt.command("show")
def show(
    store: options.Store = None,
    tenant: options.Tenant = None,
    user: options.User = None,
    conversation: options.Conversation = None,
    branch: options.BranchName = None,
    system: options.System = None,
    memory: options.Memory = None,
    as_json: options.AsJson = False,
) -> None:
    """Print the system prompt in force, as every request since the last compaction carries it."""
    flags = _flags(store, tenant, user, conversation, system, memory)
    in_force, _ = run(_prompts(branch, flags))
    if as_json:
        return print_json(_described(in_force))
    console().print(visible(in_force.text), markup=False, soft_wrap=True)
    return None


@prompt.command("diff")
def diff(
    store: options.Store = None,
    tenant: options.Tenant = None,
    user: options.User = None,
    conversation: options.Conversation = None,
    branch: options.BranchName = None,
    system: options.System = None,
    memory: options.Memory = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare the prompt in force with what base text and memory files say now, and the next compaction will send."""
    flags = _flags(store, tenant, user, conversation, system, memory)
    in_force, now = run(_prompts(branch, flags))
    lines = list(unified_diff(in_force.text.splitlines(), now.text.splitlines(), "in force", "now", lineterm=""))
    if as_json:
        return print_json({"in_force": _described(in_force), "now": _described(now), "diff": lines})
    text = "\n".join(lines) or f"no difference; revision {now.revision}"
    console().print(visible(text), markup=False, soft_wrap=True)
    return None


def _flags(*values: str | None) -> dict[str, Any]:
    return dict(zip(("store", "tenant", "user", "conversation", "system", "memory"), values, strict=True))


async def _prompts(branch: str | None, flags: dict[str, Any]) -> tuple[CompiledPrompt, CompiledPrompt]:
    async with session_of(write=False, branch=branch, **flags) as session:
        return await session.prompts()


def _described(compiled: CompiledPrompt) -> dict[str, Any]:
    return {"revision": compiled.revision, "files": [name for name, _ in compiled.files], "text": compiled.text}
