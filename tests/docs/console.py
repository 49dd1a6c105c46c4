"""Reads shell blocks into commands with what the page promises about them, and compares promises with output."""

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

SHELLS = frozenset({"console", "bash", "sh", "shell"})
EXIT = re.compile(r"\s+#\s*exit (\d+)\s*$")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
HERE_DOCUMENT = re.compile(r"<<\s*['\"]?(\w+)['\"]?")
PROMPT = "$ "
WILDCARD = "..."


class Command(NamedTuple):
    """One command of a page, the exit code and the output lines that the page promises, and its line in the page."""

    text: str
    exit_code: int
    expected: tuple[str, ...]
    line: int


def read_commands(text: str, first_line: int) -> list[Command]:
    """The commands of a shell block.

    With `$ ` prompts, what follows a command is its output. Without any prompt, each line that is not a comment is a
    command about whose output nothing is promised. Either way a backslash at a line's end and a here-document
    continue a command; a `> ` before the continued line is not part of it.
    """
    lines = text.splitlines()
    prompted = any(line.startswith(PROMPT) for line in lines)
    commands: list[Command] = []
    position = 0
    while position < len(lines):
        if prompted and not lines[position].startswith(PROMPT):
            end = position + 1
            _promise(commands, lines[position], first_line + position)
        else:
            end = _command_end(lines, position)
            commands.extend(_command(lines[position:end], first_line + position))
        position = end
    return commands


def _promise(commands: list[Command], output: str, line: int) -> None:
    """Add an output line to the last command's promises."""
    if commands:
        commands[-1] = commands[-1]._replace(expected=(*commands[-1].expected, output))
    elif output.strip():
        raise ValueError(f"line {line}: output before the first command: {output!r}")


def _command_end(lines: list[str], start: int) -> int:
    """The index after the last line of the command that starts at `start`."""
    end = start + 1
    while lines[end - 1].endswith("\\") and end < len(lines):
        end += 1
    if (match := HERE_DOCUMENT.search(lines[end - 1])) is not None:
        closing = (index for index in range(end, len(lines)) if lines[index].removeprefix("> ") == match[1])
        end = next(closing, len(lines) - 1) + 1
    return end


def _command(lines: list[str], line: int) -> Iterator[Command]:
    """The command in these lines, unless they are blank or a comment."""
    text = "\n".join([lines[0].removeprefix(PROMPT), *(part.removeprefix("> ") for part in lines[1:])])
    if text.strip() and not text.lstrip().startswith("#"):
        match = EXIT.search(text)
        yield Command(text[: match.start()] if match else text, int(match[1]) if match else 0, (), line)


def words(command: str) -> list[str]:
    """The command's words after `NAME=value` assignments, pipes and comments left in place; empty if unreadable."""
    try:
        parts = shlex.split(command, comments=True)
    except ValueError:
        return []
    while parts and ASSIGNMENT.match(parts[0]):
        parts.pop(0)
    return parts


def matches(expected: tuple[str, ...], actual: str) -> bool:
    """Whether output looks as promised.

    Blank lines and trailing spaces do not count; `...` alone on a line stands for any lines, inside a line for any
    text. No promised lines promise nothing.
    """
    promised = [line.rstrip() for line in expected if line.strip()]
    return not promised or _pattern(promised).fullmatch(_tidy(actual)) is not None


def _tidy(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines() if line.strip())


def _pattern(promised: list[str]) -> re.Pattern[str]:
    return re.compile("".join(_line_pattern(line) for line in promised))


def _line_pattern(line: str) -> str:
    if line.strip() == WILDCARD:
        return r"(?:[^\n]*\n)*?"
    return ".*?".join(re.escape(part) for part in line.split(WILDCARD)) + r"\n"
