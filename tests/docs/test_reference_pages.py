"""Nothing that a user can type, set or catch is left out of docs/, and docs/ invents nothing."""

from pathlib import Path

import msgspec
import typer

from tests.docs.markdown import Page, read_page
from tests.docs.reference import (
    CommandOptions,
    cli_gaps,
    commands,
    error_classes,
    error_gaps,
    variable_gaps,
    variables_in_source,
)
from turnfold import errors
from turnfold.config.settings import Settings, variable


def reference_page(root: Path, name: str) -> Page:
    """The page docs/NAME.md; a missing page tells of nothing."""
    path = root / "docs" / f"{name}.md"
    return read_page(path.read_text(encoding="utf-8") if path.exists() else "")


def program() -> list[CommandOptions]:
    """The commands of `turnfold`, imported here so that a broken command line fails one test and not three."""
    from turnfold.cli import main

    return list(commands(typer.main.get_command(main.app)))


def test_every_command_and_option_is_in_the_cli_page(root: Path) -> None:
    """docs/cli.md has a section for each command, with each of its options, and no others."""
    assert cli_gaps(reference_page(root, "cli"), program()) == []


def test_every_environment_variable_is_in_the_settings_page(root: Path) -> None:
    """docs/settings.md names each TURNFOLD_* variable that the code reads, and no others."""
    settings = {variable(field.name) for field in msgspec.structs.fields(Settings)}
    assert variable_gaps(reference_page(root, "settings"), variables_in_source(root / "src") | settings) == []


def test_every_error_is_in_the_errors_page(root: Path) -> None:
    """docs/errors.md names each exception of turnfold.errors, and no others of ours."""
    assert error_gaps(reference_page(root, "errors"), error_classes(errors)) == []
