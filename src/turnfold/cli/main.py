"""The `turnfold` command: its commands, and what an error means to the shell.

Exit codes: 0 done; 1 a check found problems; 2 bad input or usage; 3 the store failed; 4 a model endpoint failed;
5 the request cannot be made to fit; 130 interrupted; 70 a defect of turnfold itself.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated, NoReturn

import typer

from turnfold import __version__
from turnfold.cli import (
    branch,
    chat,
    checkpoints,
    compact,
    convert,
    diff,
    doctor,
    exports,
    imports,
    inspecting,
    log,
    pins,
    prepare,
    prompt,
    scenario,
    show,
    verify,
)
from turnfold.cli.terminal import note
from turnfold.errors import ContextOverflowError, ProviderError, StoreError, SummaryError, TurnfoldError

app = typer.Typer(
    name="turnfold",
    help="Compact long LLM conversations without losing a message.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

EXIT_PROBLEMS, EXIT_INPUT, EXIT_STORE, EXIT_PROVIDER, EXIT_OVERFLOW, EXIT_DEFECT = 1, 2, 3, 4, 5, 70


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"turnfold {__version__}")
        raise typer.Exit


@app.callback()
def turnfold(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Compact long LLM conversations without losing a message."""


for module in (
    compact,
    chat,
    show,
    log,
    checkpoints,
    diff,
    imports,
    exports,
    convert,
    inspecting,
    branch,
    pins,
    prompt,
    prepare,
    scenario,
    verify,
    doctor,
):
    module.register(app)


def exit_code(error: TurnfoldError) -> int:
    """Return what the shell is told about an error."""
    match error:
        case ContextOverflowError():
            return EXIT_OVERFLOW
        case StoreError():
            return EXIT_STORE
        case ProviderError() | SummaryError():
            return EXIT_PROVIDER
        case _:
            return EXIT_INPUT


def main() -> None:
    """Run the command line and exit: one clear message for every failure, a traceback only with `--debug`."""
    debug = "--debug" in sys.argv
    try:
        app()
    except TurnfoldError as error:
        _fail(str(error), exit_code(error), debug=debug)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left; say nothing more to it
        raise SystemExit(EXIT_PROBLEMS) from None
    except Exception as error:  # noqa: BLE001 - whatever is wrong in us, the user gets a sentence
        message = (
            f"turnfold has a defect: {type(error).__name__}: {error}. Run it again with --debug and report what it says"
        )
        _fail(message, EXIT_DEFECT, debug=debug)


def _fail(message: str, code: int, *, debug: bool) -> NoReturn:
    if debug:
        traceback.print_exc()
    note(f"turnfold: {message}")
    raise SystemExit(code)
