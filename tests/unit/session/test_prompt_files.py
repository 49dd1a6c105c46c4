"""Prompt text in files: read by content, limited, never outside the folder, and the path is in every complaint."""

import os
from pathlib import Path

import pytest

from turnfold.core.system_prompt import MAX_FILE_CHARS, compile_prompt
from turnfold.errors import InputError
from turnfold.session.prompt_files import MAX_FILE_BYTES, MAX_FILES, FilePrompt, file_reminders


async def test_base_and_memory_are_read_as_they_are_now(tmp_path: Path) -> None:
    """A change of a file's content is seen at the next reading, also when size and time stamp stay the same."""
    base, memory = tmp_path / "system.txt", tmp_path / "memory"
    memory.mkdir()
    base.write_text("You are careful.\n", encoding="utf-8")
    note = memory / "project.md"
    note.write_text("staging is db-7", encoding="utf-8")
    source = FilePrompt(base_file=base, memory=memory)
    before, stamp = await source(), note.stat()
    note.write_text("staging is db-9", encoding="utf-8")
    os.utime(note, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    after = await source()
    assert before.base == after.base == "You are careful."
    assert [file.text for file in (*before.files, *after.files)] == ["staging is db-7", "staging is db-9"]


async def test_files_come_in_name_order_from_folders_below(tmp_path: Path) -> None:
    """Names are relative to the folder; other kinds of files are no memory; a missing folder holds none."""
    for name in ("b.md", "a/deep.md", "notes.txt"):
        path = tmp_path / "memory" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    assert [file.name for file in (await FilePrompt(memory=tmp_path / "memory")()).files] == ["a/deep.md", "b.md"]
    assert (await FilePrompt("base", memory=tmp_path / "nowhere")()).files == ()


async def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    """What lies outside the memory folder stays outside the prompt."""
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    memory = tmp_path / "memory"
    memory.mkdir()
    (memory / "link.md").symlink_to(tmp_path / "secret.md")
    assert (await FilePrompt(memory=memory)()).files == ()


async def test_limits_are_told(tmp_path: Path) -> None:
    """A long file is cut in the prompt with a note; too many files, a huge one or an unreadable one names its path."""
    (tmp_path / "long.md").write_text("x" * (MAX_FILE_CHARS + 7), encoding="utf-8")
    compiled = compile_prompt(await FilePrompt(memory=tmp_path)())
    assert "7 more characters are not shown" in compiled.text
    (tmp_path / "huge.md").write_text("x" * (MAX_FILE_BYTES + 1), encoding="utf-8")
    with pytest.raises(InputError, match=r"huge\.md.*too large"):
        await FilePrompt(memory=tmp_path)()
    (tmp_path / "huge.md").unlink()
    for number in range(MAX_FILES):
        (tmp_path / f"{number}.md").touch()
    with pytest.raises(InputError, match=f"{MAX_FILES + 1} memory files"):
        await FilePrompt(memory=tmp_path)()
    with pytest.raises(InputError, match="nowhere"):
        await FilePrompt(base_file=tmp_path / "nowhere")()


async def test_bytes_that_are_no_utf8_do_not_stop_the_prompt(tmp_path: Path) -> None:
    """An odd byte shows as U+FFFD instead of failing every turn."""
    (tmp_path / "odd.md").write_bytes(b"caf\xe9")
    assert (await FilePrompt(memory=tmp_path)()).files[0].text == "caf�"


async def test_a_reminder_says_what_its_file_says_now(tmp_path: Path) -> None:
    """One reminder a file, by the file's name; a file that went away reminds of nothing."""
    todo = tmp_path / "todo.md"
    todo.write_text("- [ ] one", encoding="utf-8")
    reminders = file_reminders(tmp_path)
    assert list(reminders) == ["todo"]
    todo.write_text("- [x] one", encoding="utf-8")
    assert await reminders["todo"]() == "- [x] one"
    todo.unlink()
    assert await reminders["todo"]() == ""
