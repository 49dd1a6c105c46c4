"""The public surface: one sorted list of names that all import, light to load, and typed."""

import ast
import importlib
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import turnfold

# What `import turnfold` must not pay for: SDKs, frameworks, drivers and the terminal come in when they are used.
HEAVY = {
    "anthropic",
    "click",
    "httpx",
    "httpx2",
    "langchain_core",
    "litestar",
    "openai",
    "opentelemetry",
    "psycopg",
    "pydantic",
    "rich",
    "sqlite3",
    "typer",
    "uvicorn",
}


def test_all_is_sorted_and_without_repetition() -> None:
    """A reader finds a public name where the alphabet puts it."""
    assert list(turnfold.__all__) == sorted(set(turnfold.__all__))


def test_every_public_name_imports() -> None:
    """`from turnfold import X` works for every name that is promised."""
    module = importlib.import_module("turnfold")
    assert [name for name in turnfold.__all__ if not hasattr(module, name)] == []


def test_type_checkers_see_the_names_that_are_loaded_late() -> None:
    """The imports that only a type checker reads and the table that the program reads name the same things."""
    tree = ast.parse(Path(turnfold.__file__).read_text(encoding="utf-8"))
    (guarded,) = (node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.name: node.module for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    loaded = {name: getattr(turnfold, name) for name in turnfold.__all__ if not name.startswith("_")}
    assert typed.keys() == loaded.keys()
    for name, value in loaded.items():
        assert value is getattr(importlib.import_module(str(typed[name])), name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A typo fails as it does for any module."""
    with pytest.raises(AttributeError, match="Sesion"):
        _ = turnfold.Sesion
    assert set(turnfold.__all__) <= set(dir(turnfold))


def test_no_public_name_is_forgotten() -> None:
    """A name imported into the package is either promised in `__all__` or private."""
    own = {
        name
        for name, value in vars(turnfold).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("turnfold")
    }
    assert own - set(turnfold.__all__) == set()


def test_import_is_light() -> None:
    """`import turnfold` loads no SDK, web framework, database driver or terminal library."""
    code = "import sys, json, turnfold; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert set(json.loads(output)) & HEAVY == set()


def test_the_version_is_stated_once_in_effect() -> None:
    """The package and its metadata agree on the version."""
    assert turnfold.__version__ == version("turnfold")


def test_the_changelog_knows_the_version(root: Path) -> None:
    """A version that can be installed has an entry in the changelog."""
    assert f"## {turnfold.__version__}" in (root / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_package_says_that_it_is_typed() -> None:
    """Type checkers of our users read our annotations (PEP 561)."""
    assert Path(turnfold.__file__).with_name("py.typed").is_file()
