"""`turnfold inspect`, `convert`, `import` and `export` as a user runs them: real processes, real files, exit codes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.transcripts.samples import FOLDER
from turnfold.transcripts import decode, decode_one

PROGRAM = [sys.executable, "-c", "from turnfold.cli.main import main; main()"]
GOOD = b'{"role":"user","content":"x"}\n{"role":"assistant","content":"y"}\n'


def turnfold(*arguments: str | Path, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run a command."""
    return subprocess.run([*PROGRAM, *map(str, arguments)], input=stdin, capture_output=True, check=False)


def document(*arguments: str | Path, code: int = 0) -> Any:
    """The JSON that a command prints."""
    done = turnfold(*arguments, "--json")
    assert done.returncode == code, done.stderr.decode()
    return json.loads(done.stdout)


def test_inspect_tells_what_a_file_holds_and_who_would_take_it() -> None:
    """Format, paths, tools, tokens, and for each API whether it takes the conversation."""
    (found,) = document("inspect", FOLDER / "claude_code_session.jsonl")["conversations"]
    assert (found["format"], found["branches"], found["summaries"], found["resolved_summaries"]) == (
        "claude_code",
        2,
        1,
        1,
    )
    assert found["calls"] == {"Write": 2}
    assert found["tokens"] > 50
    assert found["refused_by"] == {"openai_chat": [], "openai_responses": [], "anthropic": []}


def test_inspect_names_the_rule_that_a_pending_call_breaks(tmp_path: Path) -> None:
    """A conversation that ends in a call without its result can be sent to nobody, and the reason is told."""
    file = tmp_path / "pending.jsonl"
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    file.write_bytes(GOOD + json.dumps({"role": "assistant", "content": None, "tool_calls": [call]}).encode())
    (found,) = document("inspect", file)["conversations"]
    assert all(found["refused_by"].values())
    shown = turnfold("inspect", file)
    assert b"refused" in shown.stdout
    assert b"c1" in shown.stderr


@pytest.mark.parametrize("command", ["inspect", "import", "convert"])
def test_a_partly_broken_file_exits_with_1_and_names_the_line(command: str, tmp_path: Path) -> None:
    """What is whole is taken, what is not is named; the exit code tells a script."""
    file = tmp_path / "talk.jsonl"
    file.write_bytes(GOOD + b'{"role":"us\n' + GOOD)
    more = {
        "inspect": (),
        "import": ("--store", tmp_path / "s.db"),
        "convert": ("--to", "turnfold", "-o", tmp_path / "o"),
    }
    done = turnfold(command, file, *more[command])
    assert done.returncode == 1
    if command != "convert":
        assert b"line 3" in done.stderr
    if command == "convert":
        assert len(decode_one((tmp_path / "o").read_bytes()).messages) == 4


@pytest.mark.parametrize(
    ("command", "data"),
    [
        (("inspect",), b""),
        (("convert", "--to", "html"), b"hello\n"),
        (("import", "--dry-run"), b"PK\x03\x04"),
        (("import",), b'{"a":1}\n'),
    ],
)
def test_what_is_no_conversation_is_refused_in_one_sentence(
    command: tuple[str, ...], data: bytes, tmp_path: Path
) -> None:
    """Exit code 2, the file's name, no traceback."""
    file = tmp_path / "talk.bin"
    file.write_bytes(data)
    done = turnfold(command[0], file, *command[1:])
    assert done.returncode == 2
    assert b"talk.bin" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["chatgpt_conversations.json", "codex_rollout.jsonl", "pi_session.jsonl"])
def test_a_sample_goes_through_our_own_format_unharmed(name: str, tmp_path: Path) -> None:
    """Convert --to turnfold keeps all that was read: messages, branches, opaque rows."""
    file = tmp_path / "out.jsonl"
    rows = document("convert", FOLDER / name, "--to", "turnfold", "--output", file)["conversations"]
    assert all(row["branches_left_out"] == row["opaque_left_out"] == 0 for row in rows)
    assert sum(row["bytes"] for row in rows) == file.stat().st_size
    for one, other in zip(decode((FOLDER / name).read_bytes()), decode(file.read_bytes()), strict=True):
        assert (one.messages, one.branches, one.opaque) == (other.messages, other.branches, other.opaque)


def test_convert_streams_to_standard_output_and_tells_beside_it() -> None:
    """A pipe gets the conversation alone; the table is on standard error."""
    done = turnfold("convert", "-", "--to", "openai_chat", stdin=GOOD)
    assert done.returncode == 0
    assert [m.text for m in decode_one(done.stdout).messages] == ["x", "y"]
    assert b"Written" in done.stderr


def test_convert_refuses_what_cannot_be_right(tmp_path: Path) -> None:
    """Unknown formats, JSON and conversation on one stream, files that are there, many conversations in one page."""
    many, file = FOLDER / "openai_finetune.jsonl", tmp_path / "out"
    file.write_text("precious")
    for arguments, word in (
        (("--to", "codex"), b"openai_chat"),
        (("--to", "turnfold", "--json"), b"standard output"),
        (("--to", "turnfold", "-o", file), b"--force"),
        (("--to", "html", "-o", file, "--force"), b"--conversation"),
        (("--to", "turnfold", "-c", "nine"), b"nine"),
    ):
        done = turnfold("convert", many, *arguments)
        assert (done.returncode, word in done.stderr) == (2, True), (arguments, done.stderr)
    assert file.read_text() == "precious"
    assert turnfold("convert", many, "--to", "html", "-c", "2", "-o", file, "--force").returncode == 0
    assert file.read_bytes().startswith(b"<!doctype html>")


@pytest.mark.parametrize("to", ["letta", "html"])
def test_a_dry_run_writes_nothing_and_tells_the_same(to: str, tmp_path: Path) -> None:
    """--dry-run and the real run give the same numbers."""
    source, file = FOLDER / "letta_session.jsonl", tmp_path / "out"
    planned = document("convert", source, "--to", to, "-o", file, "--dry-run")
    assert not file.exists()
    done = document("convert", source, "--to", to, "-o", file)
    assert planned["conversations"] == done["conversations"]


def test_a_dry_run_of_an_import_tells_what_the_import_does(tmp_path: Path) -> None:
    """Before, between and after: the same counts, and no store is made or changed."""
    store, source = tmp_path / "folder" / "s.db", FOLDER / "claude_code_session.jsonl"
    half = tmp_path / "half.jsonl"
    half.write_bytes(b"".join(source.read_bytes().splitlines(keepends=True)[:8]))
    for file, adds in ((half, True), (source, True), (source, False)):
        was_there = store.exists()
        planned = document("import", file, "--store", store, "--dry-run")
        assert store.exists() == was_there
        done = document("import", file, "--store", store)
        assert planned["conversations"] == done["conversations"]
        assert (done["conversations"][0]["added"] > 0) == adds


def test_export_of_every_branch_is_the_conversation_again(tmp_path: Path) -> None:
    """Imported, exported whole and imported elsewhere, a conversation has the same paths."""
    one, other, file = tmp_path / "one.db", tmp_path / "other.db", tmp_path / "out.jsonl"
    (row,) = document("import", FOLDER / "sillytavern_chat.jsonl", "--store", one)["conversations"]
    name = row["conversation_id"]
    (told,) = document("export", file, "--all", "--store", one, "-c", name)["conversations"]
    assert (told["branches"], told["messages"]) == (row["branches"], row["added"])
    (again,) = document("import", file, "--store", other)["conversations"]
    assert (again["added"], again["branches"]) == (row["added"], row["branches"])
    second = tmp_path / "again.jsonl"
    document("export", second, "--all", "--store", other, "-c", name)
    assert second.read_bytes() == file.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--all", "--context"), b"--context"),
        (("--all", "--format", "openai_chat"), b"one path"),
        (("--format", "codex"), b"Choose one of"),
    ],
)
def test_export_refuses_options_that_do_not_go_together(
    arguments: tuple[str, ...], word: bytes, tmp_path: Path
) -> None:
    """Told before the store is opened."""
    done = turnfold("export", tmp_path / "out", *arguments)
    assert (done.returncode, word in done.stderr) == (2, True)
