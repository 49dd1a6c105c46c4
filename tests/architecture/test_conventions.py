"""Tests use real fakes instead of patches, and every module is named after what it owns."""

from pathlib import Path

import pytest

from tests.architecture.conventions import patches, vague_modules


def test_no_test_patches_our_code(root: Path) -> None:
    """Every seam is a port with a real fake; nothing in the suite reaches around it."""
    found = {
        f"{path.relative_to(root)}:{line}"
        for path in (root / "tests").rglob("*.py")
        for line in patches(path.read_text(encoding="utf-8"))
    }
    assert found == set()


@pytest.mark.parametrize("folder", ["src", "tests", "examples", "benchmarks"])
def test_no_module_is_named_after_nothing(root: Path, folder: str) -> None:
    """No `utils`, `helpers`, `manager`, `base` or `common` anywhere."""
    assert vague_modules(root / folder) == []


@pytest.mark.parametrize(
    "source",
    [
        "from unittest.mock import Mock, patch",
        "from unittest import mock\nmock.patch('turnfold.runtime.load')",
        "import unittest.mock\nunittest.mock.patch.object(x, 'y')",
        "def test(mocker): mocker.patch('anything')",
        "def test(monkeypatch): monkeypatch.setattr('turnfold.runtime.load', None)",
        "import turnfold.runtime as r\ndef test(mp): mp.setattr(r.Runtime, 'load', None)",
        "import turnfold.runtime\ndef test(mp): mp.delattr(turnfold.runtime, 'load')",
        "from turnfold import runtime\ndef test(mp): mp.setattr(runtime, 'load', None)",
        "from turnfold.runtime import TABLE\ndef test(mp): mp.setitem(TABLE, 'load', None)",
    ],
)
def test_a_patch_is_found(source: str) -> None:
    """The check above sees each way in which a patch can be written."""
    assert patches(source) != []


@pytest.mark.parametrize(
    "source",
    [
        "def test(monkeypatch): monkeypatch.setenv('TURNFOLD_STORE', 'x')",
        "import os\ndef test(mp): mp.setattr(os, 'fsync', None)",
        "from unittest.mock import Mock",
        "import turnfold\nturnfold.runtime.load('turnfold.x')",
    ],
)
def test_honest_code_is_let_through(source: str) -> None:
    """The environment and foreign modules may be changed for a test."""
    assert patches(source) == []


def test_a_vague_name_is_found(tmp_path: Path) -> None:
    """The check above sees modules, packages and private spellings."""
    for name in ("utils.py", "core/_helpers.py", "common/x.py", "core/plan.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert vague_modules(tmp_path) == ["common", "core/_helpers.py", "utils.py"]
