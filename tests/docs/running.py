"""Runs the examples of a page in a folder of their own and says where the page and the truth differ."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.docs.console import SHELLS, Command, matches, read_commands, words
from tests.docs.markdown import Block, read_page

WORKER = Path(__file__).with_name("page_worker.py")
# Commands that a page may run in its folder besides ours. Anything else says above its block why it is not run.
RUN = frozenset(
    {"turnfold", "python", "cat", "cd", "cp", "echo", "export", "grep", "head", "ls", "mkdir", "mv", "printf", "rm"}
    | {"sort", "tail", "wc"}
)
PARSERS: dict[str, Callable[[str], object]] = {"json": json.loads, "toml": tomllib.loads}
SHORTEST_REASON = 10  # characters; shorter is no reason
TARGET = re.compile(r"^([a-z][\w-]*):", re.MULTILINE)


class Step(NamedTuple):
    """One thing that a page does: a Python block or a command, its line, and what the page promises about it."""

    kind: str
    text: str
    line: int
    exit_code: int = 0
    expected: tuple[str, ...] = ()


def check_page(page: Path, root: Path, folder: Path) -> list[str]:
    """Run every example of `page` in `folder`; the result lists what is wrong as `line N: ...`, empty if nothing.

    `examples/` of the checkout is copied into the folder. Commands about the checkout (`make`, `pip install`) are
    looked up in the Makefile and pyproject.toml at `root` and not run.
    """
    try:
        blocks = read_page(page.read_text(encoding="utf-8")).blocks
        steps, wrong = _steps(blocks, root)
    except ValueError as error:
        return [str(error)]
    return wrong + [problem for problem in _run(steps, page, root, folder) if problem]


def _steps(blocks: tuple[Block, ...], root: Path) -> tuple[list[Step], list[str]]:
    """What there is to run, and what is wrong without running anything."""
    steps: list[Step] = []
    wrong: list[str] = []
    for block, previous in zip(blocks, (None, *blocks), strict=False):
        if block.not_run is not None:
            if len(block.not_run) < SHORTEST_REASON:
                wrong.append(f"line {block.line}: a block that is not run must say why: <!-- not run: reason -->")
        elif block.language == "python":
            steps.append(Step("python", block.text, block.line))
        elif block.language == "output" and previous and previous.language == "python" and previous.not_run is None:
            steps[-1] = steps[-1]._replace(expected=tuple(block.text.splitlines()))
        elif block.language in SHELLS:
            _shell_steps(block, root, steps, wrong)
        elif block.language in PARSERS:
            wrong.extend(_parse_problem(block))
    return steps, wrong


def _shell_steps(block: Block, root: Path, steps: list[Step], wrong: list[str]) -> None:
    for command in read_commands(block.text, block.line):
        problem = _static_problem(command, root)
        if problem is None:
            steps.append(Step("command", command.text, command.line, command.exit_code, command.expected))
        elif problem:
            wrong.append(f"line {command.line}: {problem}")


def _parse_problem(block: Block) -> Iterator[str]:
    try:
        PARSERS[block.language](block.text)
    except ValueError as error:
        yield f"line {block.line}: not {block.language}: {error}"


def _static_problem(command: Command, root: Path) -> str | None:
    """None: run it. Empty: it is about the checkout and right as it stands. Otherwise what is wrong with it."""
    match words(command.text):
        case ["make", *targets]:
            known = set(TARGET.findall((root / "Makefile").read_text(encoding="utf-8")))
            unknown = [target for target in targets if "=" not in target and target not in known]
            return f"the Makefile has no target {', '.join(unknown)}" if unknown else ""
        case ["pip", "install", *packages] | ["python", "-m", "pip", "install", *packages]:
            return _unknown_extras(packages, root)
        case [verb, *_] if verb in RUN:
            return None
        case _:
            return f"cannot run {command.text!r}; put <!-- not run: reason --> directly above its block"


def _unknown_extras(packages: list[str], root: Path) -> str:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known = set(project.get("optional-dependencies", {}))
    named = {
        extra.strip()
        for package in packages
        if (match := re.match(r"(?:turnfold|\.)\[(.+)\]", package)) is not None
        for extra in match[1].split(",")
    }
    return f"pyproject.toml has no extra {', '.join(sorted(named - known))}" if named - known else ""


def _run(steps: list[Step], page: Path, root: Path, folder: Path) -> Iterator[str]:
    if not steps:
        return
    if (root / "examples").is_dir():
        shutil.copytree(root / "examples", folder / "examples", dirs_exist_ok=True)
    report = folder.with_name(f"{folder.name}.report")
    worker = subprocess.run(
        [sys.executable, WORKER, report, page.name],
        input=json.dumps([step._asdict() for step in steps]),
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    results = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    for step, result in zip(steps, results, strict=False):
        yield _compare(step, result["code"], result["output"])
    if len(results) < len(steps):
        yield f"line {steps[len(results)].line}: the run ended here: {worker.stderr.strip()}"


def environment(folder: Path) -> dict[str, str]:
    """What a page's commands see: this environment's `turnfold` first, plain output, and a home in the folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TURNFOLD_", "XDG_"))}
    return kept | {
        "PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)]),
        "HOME": str(folder),
        "COLUMNS": "120",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PYTHONUTF8": "1",
    }


def _compare(step: Step, code: int, output: str) -> str:
    if code != step.exit_code:
        return f"line {step.line}: exit {code}, not {step.exit_code}: {step.text.strip()}\n{output}"
    if not matches(step.expected, output):
        promised = "\n".join(step.expected)
        return f"line {step.line}: the output differs: {step.text.strip()}\npromised:\n{promised}\nis:\n{output}"
    return ""
