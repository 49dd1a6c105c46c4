"""Lists what the reference pages owe a reader, from the code itself, and what they fail to mention or invent."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.docs.markdown import Heading, Page, code_spans, section

VARIABLE = re.compile(r"\bTURNFOLD_[A-Z0-9]+(?:_[A-Z0-9]+)*\b")
OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
ERROR_ROW = re.compile(r"^\|\s*`(\w+)`", re.MULTILINE)
COMPLETION = frozenset({"--help", "--install-completion", "--show-completion"})


class CommandOptions(NamedTuple):
    """A command by its words after `turnfold` (empty for the program itself) and its visible options' long names."""

    path: str
    options: frozenset[str]


def commands(command: Any, path: str = "") -> Iterator[CommandOptions]:
    """Every visible command below a click command, itself first. Click is not typed the same across its versions."""
    visible = (param for param in command.params if param.param_type_name == "option" and not param.hidden)
    names = {name for param in visible for name in (*param.opts, *param.secondary_opts) if name.startswith("--")}
    yield CommandOptions(path, frozenset(names - COMPLETION))
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            yield from commands(child, f"{path} {name}".strip())


def cli_gaps(page: Page, program: list[CommandOptions]) -> list[str]:
    """What a page about the command line leaves out, and the options it tells of that no command has."""
    return [gap for command in program for gap in _command_gaps(page, command)] + _invented(page, program)


def _command_gaps(page: Page, command: CommandOptions) -> Iterator[str]:
    heading = _heading_of(page, command.path)
    if heading is None:
        yield f"no heading for `turnfold {command.path}`"
        return
    told = _options_in(section(page, heading) if command.path else page.prose)
    yield from (f"`turnfold {command.path}`: {option} is not told of" for option in sorted(command.options - told))


def _heading_of(page: Page, path: str) -> Heading | None:
    """The heading `turnfold PATH ...`, with or without backticks and arguments; the first of the page for the program."""
    for heading in page.headings:
        title = heading.text.replace("`", "").removeprefix("turnfold ")
        if not path or title == path or title.startswith(f"{path} "):
            return heading
    return None


def _options_in(prose: str) -> set[str]:
    return {option for span in code_spans(prose) for option in OPTION.findall(span) if option.startswith("--")}


def _invented(page: Page, program: list[CommandOptions]) -> list[str]:
    known = COMPLETION.union(*(command.options for command in program))
    return [f"{option} is told of, but no command has it" for option in sorted(_options_in(page.prose) - known)]


def variables_in_source(folder: Path) -> set[str]:
    """The environment variables that any file under `folder` names."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py")))
    return {name for text in texts for name in VARIABLE.findall(text)}


def variable_gaps(page: Page, variables: set[str]) -> list[str]:
    """Environment variables that a settings page leaves out or invents."""
    told = {name for span in code_spans(page.prose) for name in VARIABLE.findall(span)}
    return [f"{name} is not told of" for name in sorted(variables - told)] + [
        f"{name} is told of, but nothing reads it" for name in sorted(told - variables)
    ]


def error_classes(module: Any) -> set[str]:
    """The exception classes that a module defines."""
    return {
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, BaseException) and value.__module__ == module.__name__
    }


def error_gaps(page: Page, errors: set[str]) -> list[str]:
    """Error classes that a page leaves out, and those to which it gives a heading or a table row but that do not exist.

    Named means in backticks or in a heading; foreign errors may be named in running text.
    """
    headings = " ".join(heading.text for heading in page.headings)
    told = set(re.findall(r"\w+", " ".join([headings, *code_spans(page.prose)])))
    entries = set(re.findall(r"\w+Error\b", headings)) | set(ERROR_ROW.findall(page.prose))
    return [f"{name} is not told of" for name in sorted(errors - told)] + [
        f"{name} is told of, but does not exist" for name in sorted(entries - errors)
    ]
