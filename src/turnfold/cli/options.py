"""Options that several commands share, and the settings that they and the environment make."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from turnfold.config.settings import Resolved, resolve
from turnfold.errors import ConfigError

STORE_PANEL, BUDGET_PANEL = "Where", "Budget"

Store = Annotated[str | None, typer.Option("--store", help="The store's file.", rich_help_panel=STORE_PANEL)]
Tenant = Annotated[str | None, typer.Option("--tenant", help="The tenant.", rich_help_panel=STORE_PANEL)]
User = Annotated[str | None, typer.Option("--user", help="The user.", rich_help_panel=STORE_PANEL)]
Conversation = Annotated[
    str | None, typer.Option("--conversation", "-c", help="The conversation.", rich_help_panel=STORE_PANEL)
]
BranchName = Annotated[
    str | None, typer.Option("--branch", help="The branch (default: the one in use).", rich_help_panel=STORE_PANEL)
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Window = Annotated[
    int | None, typer.Option("--window", help="The model's context window, in tokens.", rich_help_panel=BUDGET_PANEL)
]
Counter = Annotated[
    str | None,
    typer.Option(
        "--counter", help="bpe, o200k_base, cl100k_base, script_aware or chars4.", rich_help_panel=BUDGET_PANEL
    ),
]
OutputReserve = Annotated[
    int | None, typer.Option("--output-reserve", help="Tokens kept for the reply.", rich_help_panel=BUDGET_PANEL)
]
SafetyMargin = Annotated[
    int | None, typer.Option("--safety-margin", help="Tokens kept free beside it.", rich_help_panel=BUDGET_PANEL)
]
TriggerRatio = Annotated[
    float | None,
    typer.Option("--trigger-ratio", help="Share of the input budget that starts it.", rich_help_panel=BUDGET_PANEL),
]
MaxSummaryTokens = Annotated[
    int | None,
    typer.Option("--max-summary-tokens", help="The most a summary may take.", rich_help_panel=BUDGET_PANEL),
]
Percentage = Annotated[float | None, typer.Option("--percentage", help="Share of messages that the first cut takes.")]
Mode = Annotated[str | None, typer.Option("--mode", help="sliding_window or all.")]
FloorAware = Annotated[
    bool | None,
    typer.Option("--floor-aware/--no-floor-aware", help="Plan for the room beside the fixed prompt, or as letta-code."),
]
Model = Annotated[str | None, typer.Option("--model", help="The model, as its endpoint names it.")]
BaseUrl = Annotated[str | None, typer.Option("--base-url", help="The endpoint's base URL.")]
System = Annotated[str | None, typer.Option("--system", help="The system prompt.")]

Memory = Annotated[str | None, typer.Option("--memory", help="A folder of Markdown files that stand in the prompt.")]
Provider = Annotated[str | None, typer.Option("--provider", help="The endpoint's API: openai or anthropic.")]


def settings_from(**flags: Any) -> Resolved:
    """Return the settings that flags, environment and file give. Raises ConfigError with every problem at once."""
    path = Path(os.environ.get("TURNFOLD_CONFIG", "turnfold.toml"))
    return resolve(flags=flags, environment=os.environ, file=_read_file(path), file_name=str(path))


def _read_file(path: Path) -> dict[str, Any]:
    explicit = "TURNFOLD_CONFIG" in os.environ
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if explicit:
            raise ConfigError([f"TURNFOLD_CONFIG: there is no file {path}. Correct the path or unset it."]) from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError([f"{path}: it cannot be read as TOML ({error}). Correct or remove it."]) from error
