"""Checks what a wheel and a source distribution hold: every file of the package that git tracks, and nothing stray.

Usage: python tests/smoke/distributions.py WHEEL SDIST, in the checkout. Standard library only.
"""

import subprocess
import sys
import tarfile
import zipfile

ALSO_IN_SDIST = {"README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "Makefile", "tools/make-venv", ".ci/run"}


def tracked(*folders: str) -> set[str]:
    """The files below `folders` that git tracks."""
    listing = subprocess.run(["git", "ls-files", "-z", *folders], capture_output=True, text=True, check=True).stdout
    return set(filter(None, listing.split("\0")))


def wheel_problems(wheel: str) -> list[str]:
    """Package files that the wheel lacks, and files in it that belong to no package."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {name.removeprefix("src/") for name in tracked("src")}
    return [f"{wheel} lacks {name}" for name in sorted(expected - names)] + [
        f"{wheel} holds {name}, which git does not track" for name in sorted(names - expected)
    ]


def sdist_problems(sdist: str) -> list[str]:
    """Files from which the package is built and tested that the source distribution lacks."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    expected = tracked("src", "tests", "docs", "examples", "benchmarks") | ALSO_IN_SDIST
    return [f"{sdist} lacks {name}" for name in sorted(expected - names)]


if __name__ == "__main__":
    problems = wheel_problems(sys.argv[1]) + sdist_problems(sys.argv[2])
    print("\n".join(problems) or "both hold what they should")
    sys.exit(bool(problems))
