"""What the pages show is true: examples run, outputs match, links lead somewhere, translations agree."""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.docs.markdown import anchors, read_page
from tests.docs.running import check_page, environment
from tests.docs.translation import TRANSLATED_SUFFIX, differences

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    {ROOT / "README.md", ROOT / "README.zh-CN.md", ROOT / "CHANGELOG.md"}
    | {path for folder in ("docs", "examples", "benchmarks") for path in (ROOT / folder).rglob("*.md")}
)
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
TRANSLATIONS = [page for page in PAGES if page.name.endswith(TRANSLATED_SUFFIX)]


def name(path: Path) -> str:
    """A path as a test's id."""
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_example_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    """A reader who copies the examples in order gets what the page shows."""
    folder = tmp_path / "page"
    folder.mkdir()
    problems = check_page(page, ROOT, folder)
    assert not problems, f"{name(page)}:\n" + "\n".join(problems)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    """A relative link names a file of the checkout, and an anchor a heading in it."""
    assert [link for link in read_page(page.read_text(encoding="utf-8")).links if not leads_somewhere(page, link)] == []


def leads_somewhere(page: Path, link: str) -> bool:
    """Whether a link's target exists; targets on other hosts are not looked up."""
    if re.match(r"[a-z][a-z0-9+.-]*:", link):
        return True
    path, _, anchor = unquote(link).partition("#")
    target = page.parent / path if path else page
    if not target.exists():
        return False
    return not anchor or target.suffix != ".md" or anchor in anchors(read_page(target.read_text(encoding="utf-8")))


@pytest.mark.parametrize("translation", TRANSLATIONS, ids=name)
def test_a_translation_shows_the_same(translation: Path) -> None:
    """Headings, commands, code and links of a translated page are those of the original."""
    original = translation.with_name(translation.name.replace(TRANSLATED_SUFFIX, ".md"))
    pages = [read_page(path.read_text(encoding="utf-8")) for path in (original, translation)]
    assert differences(*pages) == []


def test_both_readmes_name_the_two_commands() -> None:
    """A stranger finds `make demo` and `make test` on the first page, in both languages."""
    for readme in (ROOT / "README.md", ROOT / "README.zh-CN.md"):
        commands = {
            line for block in read_page(readme.read_text(encoding="utf-8")).blocks for line in block.text.split("\n")
        }
        assert {"make demo", "make test"} <= {line.removeprefix("$ ").split("#")[0].strip() for line in commands}, (
            readme
        )


@pytest.mark.parametrize("script", SCRIPTS, ids=name)
def test_every_example_script_runs(script: Path, tmp_path: Path) -> None:
    """Each script under examples/ ends well in an empty folder, without key or network."""
    done = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        env=environment(tmp_path) | {"TMPDIR": os.fspath(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
