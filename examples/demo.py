"""The main job, before your eyes: a long conversation compacted, killed half-way, resumed, edited, verified.

Runs in a new folder, without network or key. Ends with exit code 1 when anything it says does not hold.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from turnfold.config.settings import Settings
from turnfold.core.plan import SummaryDraft, SummaryRequest
from turnfold.messages.model import text_message
from turnfold.runtime.decision import Prepared
from turnfold.session import Session
from turnfold.tokens import make_counter
from turnfold.transcripts import decode_one
from turnfold.wiring import fallback_summarizer, make_compactor, new_id, open_session, open_store

CONVERSATION = Path(__file__).with_name("conversation.json")
WINDOW = 16_000  # tokens: the conversation has more than twice as many
console = Console(width=100, highlight=False)


def settings_in(folder: Path) -> Settings:
    """Return the settings of the demo's store."""
    return Settings(store=str(folder / "demo.db"), conversation="harborline", context_window=WINDOW)


def claim(text: str, holds: bool) -> None:
    """Say what should be so, and stop the demo if it is not."""
    console.print(f"  {'yes' if holds else 'NO '}  {text}", style="" if holds else "bold red")
    if not holds:
        raise SystemExit(1)


class SlowSummarizer:
    """A summarizer that tells that it was asked and then takes a minute, as a slow model would."""

    name, deterministic = "slow", False

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def generation_room(self, request: SummaryRequest) -> int | None:
        return None

    async def summarize(self, request: SummaryRequest, calls: object) -> SummaryDraft:
        self.marker.touch()
        await asyncio.sleep(60)
        raise AssertionError("the demo kills this process first")


async def second_compaction(folder: Path) -> None:
    """Run in the child process: compact again, slowly, until killed."""
    settings = settings_in(folder)
    compactor = make_compactor(settings, using=SlowSummarizer(folder / "asked"))
    async with open_store(settings) as store, open_session(store, settings, compactor=compactor) as session:
        await session.say("Before we go on: what did we agree about the on-call handover?")
        await session.compact()


def kill_half_way(folder: Path) -> None:
    """Start the second compaction in a process of its own and kill it while its summary is being written."""
    child = subprocess.Popen([sys.executable, __file__, "--child", str(folder)])
    deadline = time.monotonic() + 30
    while not (folder / "asked").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    claim("the second compaction was killed while its summary was being written", child.returncode == -signal.SIGKILL)


def show(prepared: Prepared) -> None:
    """Print a compaction as before and after."""
    table = Table()
    for column in ("", "before", "after"):
        table.add_column(column, justify="right")
    table.add_row("messages in view", str(prepared.messages_before), str(prepared.messages_after))
    table.add_row("tokens of the request", str(prepared.tokens_before), str(prepared.tokens))
    console.print(table)
    excerpt = "\n".join((prepared.summary or "").splitlines()[:14])
    console.print(f"[dim]{len(prepared.summary or '')} characters of summary; it begins:[/]")
    console.print(excerpt + "\n…\n", markup=False, style="italic")


async def import_and_compact(session: Session) -> Prepared:
    """Append the conversation and compact it once."""
    transcript = decode_one(CONVERSATION.read_bytes(), strict=True)
    history = [message for message in transcript.messages if message.role != "system"]
    await session.append(*history)
    prepared = await session.prepare()
    show(prepared)
    claim(f"{len(history)} messages went in; the request was over its window and now fits", fits(prepared))
    claim("the compaction is saved as version 1", prepared.persistence == "saved" and prepared.version == 1)
    return prepared


def fits(prepared: Prepared) -> bool:
    """Whether the request was too large and is within its budget now."""
    return prepared.tokens <= prepared.budget.input_budget < prepared.tokens_before


async def run(folder: Path) -> None:
    """Tell the whole story."""
    settings = settings_in(folder)
    console.rule("1. A long conversation is compacted")
    async with open_store(settings) as store, open_session(store, settings) as session:
        first = await import_and_compact(session)
        head = await store.head(session.key)
        claim("every message is still in the log", head.seq == 371)

    console.rule("2. A second compaction is killed half-way, and resumed")
    await asyncio.to_thread(kill_half_way, folder)
    async with open_store(settings) as store, open_session(store, settings) as session:
        head = await store.head(session.key)
        claim("nothing is lost: the message said just before the kill is there", head.seq == 372)
        claim("the first summary still stands", session.checkpoint is not None and session.checkpoint.version == 1)
        resumed = await session.compact()
        claim("compacted again, after the restart: version 2", resumed.persistence == "saved" and resumed.version == 2)
        reply = text_message(new_id(), "assistant", "We agreed to hand over in writing.")
        await session.reply(reply)

        console.rule("3. An old message is edited: the stale summary is refused there")
        entries = await store.read(session.key, limit=30)
        old = next(entry for entry in entries if entry.message.role == "user" and entry.position > 5)
        changed = text_message(new_id(), "user", "Stop: the port is 6000 now, forget what I said about it.")
        await session.edit(old.message.id, changed)
        claim("the edited branch uses no summary that saw the old message", session.checkpoint is None)
        view = await session.view()
        claim("and shows the edited message instead", view.messages[-1].text == changed.text)
        await session.switch("main")
        claim("the old branch still has its summary", session.checkpoint is not None)

        console.rule("4. The store is verified")
        report = await store.verify()
        told = f"{report.messages} rows and {report.checkpoints} checkpoints hash to what is stored"
        claim(told, not report.problems and report.checkpoints == 2)
    saved = 1 - first.tokens / first.tokens_before
    console.print(
        f"\nDone. {saved:.0%} of the request saved, nothing forgotten. Counter: {make_counter('bpe').name}; ", end=""
    )
    console.print(f"summarizer: {fallback_summarizer(make_counter('bpe')).name}, no model.")


def main() -> None:
    """Run the demo in a new folder, or the child's part in the parent's."""
    if sys.argv[1:2] == ["--child"]:
        asyncio.run(second_compaction(Path(sys.argv[2])))
        return
    with tempfile.TemporaryDirectory(prefix="turnfold-demo-") as folder:
        asyncio.run(run(Path(folder)))


if __name__ == "__main__":
    main()
