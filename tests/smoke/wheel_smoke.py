"""Uses the installed wheel as a stranger would: bare, from another folder. Standard library and turnfold only.

Usage: python -I wheel_smoke.py, in an empty folder, with the `turnfold` of the same environment first on PATH.
"""

import importlib
import importlib.metadata
import json
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import turnfold
from turnfold.errors import MissingExtraError
from turnfold.messages.canonical import chain_of
from turnfold.messages.model import text_message

# Top-level packages that only an extra brings; the shipped contract suites may use the test tools.
OPTIONAL = {
    "anthropic",
    "httpx",
    "httpx2",
    "hypothesis",
    "litestar",
    "openai",
    "opentelemetry-api",
    "psycopg",
    "psycopg_pool",
    "pytest",
    "uvicorn",
}
WINDOW = 1_000  # tokens: twenty messages of about 27 tokens are over half of it
RESULT_KEYS = {
    "mode",
    "cutoff_index",
    "messages_before",
    "messages_after",
    "tokens_before",
    "tokens_after",
    "message_tokens_before",
    "message_tokens_after",
    "context_window",
    "outcome",
    "reasons",
}


def conversation() -> list[dict[str, str]]:
    """Twenty messages in OpenAI chat form, English and Chinese."""
    asked = (
        "Question {0}: where does module number {0} keep its settings, and what do we change there first? 第{0}个问题。"
    )
    answered = "Answer {0}: in config/module_{0}.toml; raise the limit to {0}00 and restart the worker. 第{0}个回答。"
    return [
        message
        for number in range(1, 11)
        for message in (
            {"role": "user", "content": asked.format(number)},
            {"role": "assistant", "content": answered.format(number)},
        )
    ]


def command(*arguments: str, exit_code: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Run the installed `turnfold`; any exit code but the expected one (None: any but 0) ends the smoke test."""
    program = shutil.which("turnfold")
    assert program, "the wheel installed no `turnfold` command"
    assert Path(program).parent == Path(sys.executable).parent, f"{program} is not the wheel's command"
    done = subprocess.run([program, *arguments], capture_output=True, text=True, encoding="utf-8", check=False)
    right = done.returncode == exit_code if exit_code is not None else done.returncode != 0
    assert right, f"turnfold {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done


def json_of(*arguments: str) -> Any:
    """The one document that a command with `--json` writes to standard output."""
    return json.loads(command(*arguments, "--json").stdout)


def check_installation() -> None:
    """The wheel is what runs, it is typed and licensed, and its metadata says what it needs."""
    assert "site-packages" in turnfold.__file__, f"not the wheel: {turnfold.__file__}"
    assert Path(turnfold.__file__).with_name("py.typed").is_file()
    metadata = importlib.metadata.metadata("turnfold")
    assert metadata["Version"] == turnfold.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert {"openai", "anthropic", "postgres", "service"} <= set(metadata.get_all("Provides-Extra") or ())


def check_every_module() -> None:
    """Each module imports without any extra, or fails only for the package of one."""
    missing = {
        module.name: missing_package(module.name) for module in pkgutil.walk_packages(turnfold.__path__, "turnfold.")
    }
    wrong = {name: package for name, package in missing.items() if package and package not in OPTIONAL}
    assert not wrong, f"needed, but not among the dependencies: {wrong}"


def missing_package(module: str) -> str | None:
    """The package whose absence keeps a module from being imported; None if it imports."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        return (error.name or module).partition(".")[0]
    except MissingExtraError as error:
        return error.package
    return None


def check_library() -> None:
    """Public names import, and a history is named by its content."""
    assert all(hasattr(turnfold, name) for name in turnfold.__all__)
    history = [text_message(str(place), "user", f"message {place} 消息") for place in range(3)]
    renamed = [text_message(f"other-{place}", "user", f"message {place} 消息") for place in range(3)]
    edited = [*history[:2], text_message("2", "user", "message 2, edited")]
    assert chain_of(history) == chain_of(renamed) != chain_of(edited)


def check_command_line() -> None:
    """A conversation file is compacted, a dry run changes nothing, and a bad file is refused in one clear message."""
    assert turnfold.__version__ in command("--version").stdout
    Path("talk.json").write_text(json.dumps(conversation(), ensure_ascii=False), encoding="utf-8")
    flags = ("compact", "talk.json", "--window", str(WINDOW))
    planned = json_of(*flags, "--dry-run")
    assert planned.keys() >= RESULT_KEYS, f"missing: {sorted(RESULT_KEYS - planned.keys())}"
    result = json_of(*flags, "--output", "short.json")
    assert result.keys() >= RESULT_KEYS | {"summary"}, f"missing: {sorted(RESULT_KEYS - result.keys())}"
    assert result["context_window"] == WINDOW
    assert result["messages_before"] == len(conversation())
    assert result["messages_after"] < result["messages_before"]
    assert result["tokens_after"] < result["tokens_before"]
    assert result["summary"].strip()
    assert result["cutoff_index"] == planned["cutoff_index"]
    assert Path("short.json").stat().st_size > 0
    Path("not-talk.json").write_text('{"fruit": "apple"}', encoding="utf-8")
    refused = command("compact", "not-talk.json", exit_code=None)
    assert "not-talk.json" in refused.stderr


def check_settings() -> None:
    """The settings a stranger starts with are all right as they stand."""
    assert json_of("doctor")


def main() -> None:
    """Run every check."""
    for check in (check_installation, check_every_module, check_library, check_command_line, check_settings):
        check()
        print(f"{check.__name__}: holds")


if __name__ == "__main__":
    main()
