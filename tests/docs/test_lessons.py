"""The page of lessons names tests that exist, so that no promise on it is empty."""

import ast
import re
from pathlib import Path

NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def test_every_lesson_has_its_test(root: Path) -> None:
    """Each row of the page names a test function that its file defines."""
    page = (root / "docs" / "lessons.md").read_text(encoding="utf-8")
    lines = [
        line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| failure", "| ---"))
    ]
    named = [NAMED.search(line) for line in lines]
    assert lines
    assert None not in named
    missing = {match[0] for match in named if match and match[2] not in functions_of(root / match[1])}
    assert missing == set()


def functions_of(path: Path) -> set[str]:
    """The names of all functions that a file defines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
