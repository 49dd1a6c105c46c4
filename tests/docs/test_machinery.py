"""The checks of the pages see what they should: each is run on small made-up pages, right and wrong."""

import shutil
from pathlib import Path

import pytest
import typer

from tests.docs.console import Command, matches, read_commands
from tests.docs.markdown import Page, anchors, code_spans, read_page, section
from tests.docs.reference import (
    CommandOptions,
    cli_gaps,
    commands,
    error_classes,
    error_gaps,
    variable_gaps,
    variables_in_source,
)
from tests.docs.running import check_page
from tests.docs.translation import differences

PAGE = """\
# One `code` title

See [the settings](docs/settings.md#window "title") and <a href="LICENSE">the license</a>, not `[this](x)`.

<!-- not run: it needs a key of yours -->
```python
print("# not a heading")
```

- a list
  ```console
  $ turnfold show
  ```

## Second
[ref]: https://example.org
## Second
"""


def test_a_page_is_taken_apart() -> None:
    """Blocks, headings and links are found where Markdown has them, and nowhere else."""
    page = read_page(PAGE)
    assert [(block.language, block.text, block.line) for block in page.blocks] == [
        ("python", 'print("# not a heading")\n', 7),
        ("console", "$ turnfold show\n", 12),
    ]
    assert [block.not_run for block in page.blocks] == ["it needs a key of yours", None]
    assert [(heading.level, heading.text) for heading in page.headings] == [
        (1, "One `code` title"),
        (2, "Second"),
        (2, "Second"),
    ]
    assert page.links == ("docs/settings.md#window", "LICENSE", "https://example.org")
    assert anchors(page) == {"one-code-title", "second", "second-1"}


def test_an_open_fence_is_an_error() -> None:
    """A fence that is never closed hides the rest of a page, so it is named."""
    with pytest.raises(ValueError, match="line 2: the fence is never closed"):
        read_page("text\n```python\nx = 1\n")


def test_a_section_ends_at_the_next_heading_of_its_level() -> None:
    """Sub-sections belong to a section, the next section does not."""
    page = read_page("# A\none\n## B\n`two`\n# C\nthree\n")
    assert section(page, page.headings[0]) == "# A\none\n## B\n`two`"
    assert code_spans(section(page, page.headings[1])) == ["two"]


def test_commands_are_read_with_what_is_promised() -> None:
    """Prompts, continuations, here-documents, exit codes and output each go where they belong."""
    text = "$ turnfold show \\\n>   --json\n{...}\n\n$ cat > x <<'END'\na\nEND\n$ turnfold verify x  # exit 4\nbad\n"
    assert read_commands(text, 10) == [
        Command("turnfold show \\\n  --json", 0, ("{...}", ""), 10),
        Command("cat > x <<'END'\na\nEND", 0, (), 14),
        Command("turnfold verify x", 4, ("bad",), 17),
    ]


def test_without_prompts_each_line_is_a_command() -> None:
    """A block to copy whole promises nothing about output; comments and blank lines are not commands."""
    assert [command.text for command in read_commands("# first\nmake demo\n\nmake test  # all of it\n", 1)] == [
        "make demo",
        "make test  # all of it",
    ]


@pytest.mark.parametrize(
    ("promised", "actual", "expected"),
    [
        ((), "anything", True),
        (("a", "b"), "a\nb\n", True),
        (("a", "", "b "), "a\n\n\nb\n", True),
        (("a",), "a\nb\n", False),
        (("a", "..."), "a\nb\nc\n", True),
        (("...", "c"), "a\nb\nc\n", True),
        (("a", "...", "c"), "a\nc\n", True),
        (("~... -> ~... tokens",), "~462 -> ~365 tokens\n", True),
        (("~... -> ~... tokens",), "~462 -> ~365 words\n", False),
        (("a.c",), "abc\n", False),
        (("a...b",), "a\nb\n", False),
    ],
)
def test_output_is_compared_loosely_but_compared(promised: tuple[str, ...], actual: str, expected: bool) -> None:
    """`...` stands for anything in its place; everything else must be there."""
    assert matches(promised, actual) is expected


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """A made-up checkout with the real build files and one example file."""
    made = tmp_path / "checkout"
    (made / "examples").mkdir(parents=True)
    (made / "examples" / "data.txt").write_text("data\n", encoding="utf-8")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(root / name, made)
    return made


def problems(checkout: Path, text: str) -> list[str]:
    """What `check_page` says about a page with this text."""
    page, folder = checkout / "PAGE.md", checkout.with_name("run")
    folder.mkdir()
    page.write_text(text, encoding="utf-8")
    return check_page(page, checkout, folder)


def test_a_true_page_passes(checkout: Path) -> None:
    """Python and commands run in order, in one folder and one namespace, with the examples at hand."""
    text = """\
```python
from pathlib import Path
text = Path("examples/data.txt").read_text()
```
```console
$ make demo
$ pip install 'turnfold[openai]'
$ cat examples/data.txt > copy.txt
$ export WORD=spoken
$ echo "$WORD"; cat no-such-file  # exit 1
spoken
...
```
```python
class Kept: ...
assert Kept.__module__ == "__main__"
assert Path("copy.txt").read_text() == text
print(text)
```
```output
data
```
<!-- not run: it would delete the internet -->
```bash
$ dangerous --now
```
```json
{"a": [1]}
```
"""
    assert problems(checkout, text) == []
    assert (checkout / "examples").is_dir()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```python\nx = 1\nassert x == 2\n```\n", 'File "PAGE.md", line 3'),
        ("```python\nprint(1)\n```\n```output\n2\n```\n", "the output differs"),
        ("```console\n$ echo one\ntwo\n```\n", "line 2: the output differs"),
        ("```console\n$ ls no-such-file\n```\n", "not 0"),
        ("```console\n$ echo fine  # exit 3\n```\n", "exit 0, not 3"),
        ("```bash\nmake fame\n```\n", "the Makefile has no target fame"),
        ("```console\n$ pip install turnfold[gold]\n```\n", "pyproject.toml has no extra gold"),
        ("```console\n$ curl example.org\n```\n", "cannot run 'curl example.org'"),
        ("<!-- not run: no -->\n```python\n1 / 0\n```\n", "must say why"),
        ("<!-- not run -->\n```python\n1 / 0\n```\n", "must say why"),
        ("<!-- not run: it is far above -->\n\n```python\n1 / 0\n```\n", "ZeroDivisionError"),
        ("```python\nimport os\nos._exit(3)\n```\n", "the run ended here"),
        ("```console\noutput\n$ echo\n```\n", "output before the first command"),
        ("```json\n{'a': 1}\n```\n", "not json"),
        ("```toml\na = \n```\n", "not toml"),
        ("```python\nopen\n", "never closed"),
    ],
)
def test_an_untrue_page_is_named(checkout: Path, text: str, complaint: str) -> None:
    """Each way in which a page can be wrong is found, with its line."""
    found = problems(checkout, text)
    assert len(found) == 1
    assert complaint in found[0]


def test_settings_of_the_person_who_runs_the_tests_do_not_reach_a_page(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page runs as for a stranger: without TURNFOLD_* variables and with an empty home."""
    monkeypatch.setenv("TURNFOLD_STORE", "mine.sqlite3")
    text = '```console\n$ echo "[$TURNFOLD_STORE]" $(basename "$HOME")\n[] run\n```\n'
    assert problems(checkout, text) == []


ENGLISH = (
    "# Title\nRead it [in Chinese](README.zh-CN.md) or [more](docs/cli.md#top).\n```bash\nmake demo\n```\n## End\n"
)
CHINESE = "# 标题\n[英文](README.md)，[更多](docs/cli.zh-CN.md#顶).\n```bash\nmake demo\n```\n## 完\n"


def test_a_faithful_translation_passes() -> None:
    """Only the words between the code differ."""
    assert differences(read_page(ENGLISH), read_page(CHINESE)) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("## 完", "### 完", "heading 2"),
        ("## 完\n", "", "heading 2: 'End' against None"),
        ("make demo", "make  demo", "code block 1"),
        ("(README.md)", "(LICENSE)", "link only in the translation: LICENSE"),
        ("[更多](docs/cli.zh-CN.md#顶)", "", "link only in the original: docs/cli.md"),
    ],
)
def test_an_unfaithful_translation_is_named(old: str, new: str, complaint: str) -> None:
    """A heading, a command or a link that differs is found."""
    assert complaint in "\n".join(differences(read_page(ENGLISH), read_page(CHINESE.replace(old, new))))


PROGRAM = [
    CommandOptions("", frozenset({"--version"})),
    CommandOptions("compact", frozenset({"--window", "--json"})),
    CommandOptions("log show", frozenset({"--json"})),
]
CLI_PAGE = """\
# Command line
`turnfold --version` prints it.
## `turnfold compact FILE`
| `--window N` | tokens |
| `--json` | one document |
## log show
`--json`
"""


def test_a_program_is_listed_from_its_code() -> None:
    """Commands, sub-commands and both names of a switch are seen; hidden ones and `--help` are not."""
    app, log = typer.Typer(), typer.Typer()
    app.add_typer(log, name="log")

    @app.command()
    def compact(
        file: str, window: int = typer.Option(3, "--window", "-w"), dry: bool = typer.Option(default=False)
    ) -> None:
        """Made up."""

    @app.command(hidden=True)
    def secret() -> None:
        """Made up."""

    @log.command("show")
    def show() -> None:
        """Made up."""

    assert [compact, secret, show]
    assert list(commands(typer.main.get_command(app))) == [
        CommandOptions("", frozenset()),
        CommandOptions("compact", frozenset({"--window", "--dry", "--no-dry"})),
        CommandOptions("log", frozenset()),
        CommandOptions("log show", frozenset()),
    ]


def test_a_complete_cli_page_passes() -> None:
    """Each command has a heading and each option is told of below it."""
    assert cli_gaps(read_page(CLI_PAGE), PROGRAM) == []


@pytest.mark.parametrize(
    ("old", "new", "gap"),
    [
        ("## log show\n", "", "no heading for `turnfold log show`"),
        ("`--window N`", "the window", "`turnfold compact`: --window is not told of"),
        ("## log show\n`--json`", "## log show", "`turnfold log show`: --json is not told of"),
        ("`--json` | one", "`--json`, `--xml` | one", "--xml is told of, but no command has it"),
        ("`turnfold --version` prints", "Something prints", "`turnfold `: --version is not told of"),
    ],
)
def test_a_gap_in_the_cli_page_is_named(old: str, new: str, gap: str) -> None:
    """A command or option that is not documented, or documented and gone, is found."""
    assert gap in cli_gaps(read_page(CLI_PAGE.replace(old, new)), PROGRAM)


def test_variables_are_compared_both_ways(tmp_path: Path) -> None:
    """What the code reads and what the page tells of are the same variables."""
    (tmp_path / "config.py").write_text("WINDOW = 'TURNFOLD_WINDOW'\nx = 'TURNFOLD_STORE'", encoding="utf-8")
    variables = variables_in_source(tmp_path)
    assert variables == {"TURNFOLD_WINDOW", "TURNFOLD_STORE"}
    page = read_page("Set `TURNFOLD_WINDOW=8192` or `TURNFOLD_COLOR`.")
    assert variable_gaps(page, variables) == [
        "TURNFOLD_STORE is not told of",
        "TURNFOLD_COLOR is told of, but nothing reads it",
    ]


def errors_page(text: str) -> Page:
    """A made-up errors page."""
    return read_page(f"# Errors\n{text}\n")


def test_errors_are_compared_both_ways() -> None:
    """Each of our errors is named, none is invented, and foreign ones may be mentioned."""
    ours = {"TurnfoldError", "VersionConflict"}
    assert error_gaps(errors_page("## TurnfoldError\n| `VersionConflict` | of a `sqlite3.Error` |"), ours) == []
    assert error_gaps(errors_page("## TurnfoldError\nA VersionConflict."), ours) == ["VersionConflict is not told of"]
    assert error_gaps(errors_page("`TurnfoldError`\n| `VersionConflict` |\n| `GoneError` |"), ours) == [
        "GoneError is told of, but does not exist"
    ]


def test_only_exceptions_of_the_module_itself_are_its_errors() -> None:
    """Imported and other names do not count."""

    class Module:
        OwnError = type("OwnError", (Exception,), {"__module__": "made.up"})
        ForeignError = ValueError
        number = 3
        __name__ = "made.up"

    module = Module()
    module.__dict__.update(vars(Module), __name__="made.up")
    assert error_classes(module) == {"OwnError"}
