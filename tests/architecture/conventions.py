"""Finds what this project does not allow in its own files: patched code under test, and modules named after nothing."""

import ast
from collections.abc import Iterator
from pathlib import Path

VAGUE_NAMES = frozenset({"utils", "util", "helpers", "helper", "manager", "base", "common", "misc"})
PATCHING_METHODS = frozenset({"setattr", "delattr", "setitem", "delitem"})


def vague_modules(folder: Path) -> list[str]:
    """Modules and packages under `folder` whose name says nothing about what they own."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.stem.strip("_").lower() in VAGUE_NAMES and (path.suffix == ".py" or path.is_dir())
    )


def patches(source: str) -> list[int]:
    """Line numbers at which a test replaces a piece of turnfold (or anything, by `mock.patch`) behind its back."""
    tree = ast.parse(source)
    ours = set(_names_from_turnfold(tree))
    found = (node for node in ast.walk(tree) if _is_mock_patch(node) or _monkeypatches(node, ours))
    return sorted({node.lineno for node in found if isinstance(node, ast.expr | ast.stmt)})


def _names_from_turnfold(tree: ast.AST) -> Iterator[str]:
    """Local names that stand for turnfold's modules, classes and functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "turnfold":
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "turnfold":
                    yield alias.asname or "turnfold"


def _is_mock_patch(node: ast.AST) -> bool:
    match node:
        case ast.ImportFrom(module="unittest.mock" | "mock", names=names):
            return any(alias.name == "patch" for alias in names)
        case ast.Attribute(attr="patch", value=ast.Name(id="mock" | "mocker") | ast.Attribute(attr="mock")):
            return True
        case _:
            return False


def _monkeypatches(node: ast.AST, ours: set[str]) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=attr), args=[ast.Constant(value=str(target)), *_]):
            return attr in PATCHING_METHODS and target.split(".")[0] == "turnfold"
        case ast.Call(func=ast.Attribute(attr=attr, value=receiver), args=[target, *_]):
            return attr in PATCHING_METHODS and _root(receiver) not in ours and _root(target) in ours
        case _:
            return False


def _root(node: ast.AST) -> str:
    """`a` of `a.b.c`; empty for anything that is not a dotted name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
