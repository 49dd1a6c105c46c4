"""Reasons are data for programs: every code is documented, and nothing is documented that no code says."""

import re
from pathlib import Path

CODE = re.compile(r"(?:code=|_reject\(|_unusable\(|_unverifiable\()\"([a-z_]+)\"|code: str = \"([a-z_]+)\"")
FOLDERS = ("core", "runtime", "session", "summarizers")


def test_every_code_is_documented(root: Path) -> None:
    """A reason that a turn reports can be looked up."""
    sources = [path for folder in FOLDERS for path in (root / "src/turnfold" / folder).rglob("*.py")]
    found = {a or b for path in sources for a, b in CODE.findall(path.read_text("utf-8"))}
    documented = set(re.findall(r"`([a-z_]+)`", (root / "docs/reasons.md").read_text("utf-8")))
    assert len(found) > 40
    assert found - documented == set()


def test_every_documented_code_is_said(root: Path) -> None:
    """The page names no code that the source does not have."""
    source = "\n".join(path.read_text("utf-8") for path in (root / "src/turnfold").rglob("*.py"))
    rows = [line for line in (root / "docs/reasons.md").read_text("utf-8").splitlines() if line.startswith("| `")]
    documented = {code for row in rows for code in re.findall(r"`([a-z_]+)`", row.split("|")[1])}
    assert {code for code in documented if f'"{code}"' not in source} == set()
