"""Prompt text that lives in files: the base text, a folder of memory files, a folder of reminders.

Files are read anew each time they are asked for, so a change is seen by its content, not by its time stamp.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from turnfold.core.system_prompt import MemoryFile, PromptInput
from turnfold.errors import InputError
from turnfold.session.reminding import ReminderProvider

MAX_FILES = 64
"""Memory files of one folder, in name order; more than these is an archive, not a prompt."""

MAX_FILE_BYTES = 1_000_000
"""A larger file was not meant for a prompt (what reaches it is limited in characters, far below)."""


class FilePrompt:
    """A prompt source: `base` text (or the file `base_file`) and every Markdown file below `memory`.

    A missing folder holds no files. Symbolic links are not followed out of the folder. Raises InputError, with the path, for
    a file that cannot be read or is too large, and for more than `MAX_FILES` memory files.
    """

    def __init__(self, base: str = "", *, base_file: Path | None = None, memory: Path | None = None) -> None:
        self.base, self.base_file, self.memory = base, base_file, memory

    async def __call__(self) -> PromptInput:
        """Return base text and memory files as they are now."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> PromptInput:
        base = self.base if self.base_file is None else read_text(self.base_file)
        return PromptInput(base=base.strip(), files=self._memory_files())

    def _memory_files(self) -> tuple[MemoryFile, ...]:
        if self.memory is None:
            return ()
        paths = markdown_files(self.memory)
        if len(paths) > MAX_FILES:
            raise InputError(
                f"{self.memory}: it holds {len(paths)} memory files; at most {MAX_FILES} go into a prompt. "
                "Merge some, or move what is not needed in every call out of the folder."
            )
        return tuple(MemoryFile(name=path.relative_to(self.memory).as_posix(), text=read_text(path)) for path in paths)


def file_reminders(folder: Path) -> dict[str, ReminderProvider]:
    """Return one reminder for each Markdown file in the folder, by the file's name without its ending."""
    return {path.stem: _file_reminder(path) for path in markdown_files(folder)}


def _file_reminder(path: Path) -> ReminderProvider:
    async def read() -> str:
        return await asyncio.to_thread(_read_if_there, path)

    return read


def _read_if_there(path: Path) -> str:
    return read_text(path) if path.exists() else ""


def markdown_files(folder: Path) -> list[Path]:
    """Return the Markdown files below a folder in name order, without those that links reach outside it."""
    root = folder.resolve()
    found = (path for path in folder.rglob("*.md") if path.is_file() and path.resolve().is_relative_to(root))
    return sorted(found)


def read_text(path: Path) -> str:
    """Return a UTF-8 file's text; a byte that is not UTF-8 shows as U+FFFD.

    Raises InputError with the path when it cannot be read, or is larger than `MAX_FILE_BYTES`.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"{path}: the file cannot be read ({error.strerror}). Correct the path or its rights."
        ) from error
    if len(content) > MAX_FILE_BYTES:
        raise InputError(f"{path}: it is larger than {MAX_FILE_BYTES:,} bytes, too large for a prompt. Shorten it.")
    return content.decode("utf-8", "replace")
