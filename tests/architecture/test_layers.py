"""The layers of docs/ARCHITECTURE.md hold, and the check that holds them can fail."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

LINT_IMPORTS = Path(sysconfig.get_path("scripts")) / "lint-imports"


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter with the settings and sources at `root`."""
    return subprocess.run(
        [LINT_IMPORTS, "--no-logo", "--no-cache"],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def write_module(root: Path, name: str, text: str) -> None:
    """Write module `turnfold.<name>`, its parents as packages."""
    path = root.joinpath("src", "turnfold", *name.split(".")).with_suffix(".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / "__init__.py").touch()
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def made_up(root: Path, tmp_path: Path) -> Path:
    """A small made-up turnfold that keeps the contracts of the real settings."""
    shutil.copy(root / "pyproject.toml", tmp_path)
    write_module(tmp_path, "__init__", "from turnfold.session import Session\n")
    write_module(tmp_path, "errors", "")
    write_module(tmp_path, "messages.model", "import turnfold.errors\n")
    write_module(tmp_path, "transcripts.jsonl", "import json\nimport turnfold.messages.model\n")
    write_module(tmp_path, "core.plan", "import turnfold.messages.model\n")
    write_module(tmp_path, "providers.scripted", "import openai\nimport turnfold.core.plan\n")
    write_module(tmp_path, "session", "import asyncio\nimport turnfold.providers.scripted\nSession = object\n")
    write_module(tmp_path, "cli.main", "import typer\nimport turnfold\n")
    return tmp_path


def test_the_contracts_hold(root: Path) -> None:
    """Every import points downwards, the core is pure, and each foreign package stays behind its seam."""
    result = lint_imports(root)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_contracts_let_good_code_pass(made_up: Path) -> None:
    """What the tests below spoil is sound before it is spoiled."""
    result = lint_imports(made_up)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "3 kept, 0 broken" in result.stdout


SPOILERS = {
    "an upward import": ("errors", "import turnfold.messages.model", "turnfold.errors -> turnfold.messages"),
    "an upward import through the package": (
        "core.view",
        "from turnfold import Session",
        "turnfold.core.view -> turnfold",
    ),
    "a sideways import": (
        "core.plan",
        "import turnfold.transcripts.jsonl",
        "turnfold.core.plan -> turnfold.transcripts",
    ),
    "a clock in the messages": ("messages.clock", "import time", "turnfold.messages.clock -> time"),
    "threads in the core": ("core.lock", "import threading", "turnfold.core.lock -> threading"),
    "the file system in a codec": ("transcripts.read", "from os import path", "turnfold.transcripts.read -> os"),
    "an event loop in the errors": ("errors", "import asyncio.locks", "turnfold.errors -> asyncio"),
    "an SDK outside the providers": ("config", "import openai", "turnfold.config -> openai"),
    "a database driver in a session": ("session", "import sqlite3", "turnfold.session -> sqlite3"),
    "a module in no layer": ("shared", "", "shared"),
}


@pytest.mark.parametrize(("module", "line", "complaint"), SPOILERS.values(), ids=SPOILERS)
def test_each_contract_can_fail(made_up: Path, module: str, line: str, complaint: str) -> None:
    """One bad import anywhere is found and named."""
    write_module(made_up, module, f"{line}\n")
    result = lint_imports(made_up)
    assert result.returncode == 1
    assert complaint in result.stdout, result.stdout + result.stderr
