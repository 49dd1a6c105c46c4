"""Runs the command line in this process, from its `main` on: a start of Python for each command would cost seconds."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

from turnfold.cli.main import main


class Done(NamedTuple):
    """What a command left behind: its exit code, standard output and standard error."""

    code: int
    out: str
    err: str


def turnfold(*words: str, stdin: str = "") -> Done:
    """Run `turnfold WORDS` as a shell would, with `stdin` as its standard input."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    given, sys.argv = sys.argv, ["turnfold", *words]
    fed, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    finally:
        sys.argv, sys.stdin = given, fed
    return Done(code, out.getvalue(), err.getvalue())
