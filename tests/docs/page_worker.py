"""Runs the blocks of one page, in order, in the current folder: the process behind `tests.docs.running`.

Standard library only; it runs on its own so that a page's Python is a real `__main__` and cannot touch the tests.
Reads a JSON list of `{"kind": "python" | "command", "text", "line"}` from standard input, writes one JSON line a
step to the file named by the first argument: `{"code", "output"}`.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import traceback
import types
from typing import Any

COMMAND_SECONDS = 100


def main(report: str, page: str) -> None:
    """Run every step of the page named `page`, for tracebacks, and report each to the file `report`."""
    steps = json.load(sys.stdin)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    sys.path.insert(0, "")
    with open(report, "w", encoding="utf-8") as out:
        for step in steps:
            run = run_python if step["kind"] == "python" else run_command
            result = run(step, module, page)
            out.write(json.dumps(result) + "\n")
            out.flush()


def run_python(step: dict[str, Any], module: types.ModuleType, page: str) -> dict[str, Any]:
    """Run a block in the page's one namespace; line numbers in a traceback are the page's."""
    source = "\n" * (step["line"] - 1) + step["text"]
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            exec(compile(source, page, "exec"), vars(module))
    except BaseException:
        return {"code": 1, "output": output.getvalue() + traceback.format_exc()}
    return {"code": 0, "output": output.getvalue()}


def run_command(step: dict[str, Any], module: types.ModuleType, page: str) -> dict[str, Any]:
    """Run a command line in a shell; `cd` and `export` last for the rest of the page."""
    verb, _, rest = step["text"].strip().partition(" ")
    if verb == "cd":
        os.chdir(rest.strip())
        return {"code": 0, "output": ""}
    if verb == "export":
        name, _, value = rest.strip().partition("=")
        os.environ[name] = value.strip("'\"")
        return {"code": 0, "output": ""}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", step["text"]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=COMMAND_SECONDS,
    )
    return {"code": done.returncode, "output": done.stdout}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
