"""What summaries keep, counted: facts of dialogues, standing instructions, identifiers. Used by `bench_extractive` and the tests.

The data is in `tests/data` (its README says what each file holds) and, for LoCoMo, beside the checkout in `../shared`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from turnfold.core.extract import extract
from turnfold.core.instructions import standing_instructions
from turnfold.core.plan import SummaryRequest
from turnfold.messages.model import Message, text_message
from turnfold.tokens.bpe import bpe_counter
from turnfold.transcripts import decode

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "data"
SHARED = ROOT.parent / "shared"
LOCOMO = SHARED / "data" / "locomo10.json"

count_text = bpe_counter("o200k_base").count_text
PLENTY = 1_000_000


def rows_of(name: str) -> list[dict[str, Any]]:
    """Return the rows of a JSON Lines file of `tests/data`."""
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def messages_of(file: Path) -> tuple[Message, ...]:
    """Return the messages of a transcript but its system prompt."""
    (transcript,) = decode(file.read_bytes())
    return tuple(message for message in transcript.messages if message.role != "system")


def tokens_of(messages: Sequence[Message]) -> int:
    """Return the tokens of a dialogue, speakers included."""
    return count_text("\n".join(message.text for message in messages))


def summary_of(messages: Sequence[Message], share: float) -> str:
    """Return the extractive summary at a share of the dialogue's tokens."""
    tokens = int(share * tokens_of(messages))
    request = SummaryRequest(
        messages=tuple(messages), mode="sliding_window", frame="frame", max_tokens=tokens, max_chars=PLENTY
    )
    return extract(request, count_text)


def facts_kept(dialogue: str, share: float) -> float:
    """Return the share of a dialogue's planted facts that its summary holds."""
    summary = summary_of(messages_of(DATA / f"{dialogue}.json"), share)
    facts = json.loads((DATA / f"{dialogue}_facts.json").read_text(encoding="utf-8"))
    return sum(all(word in summary for word in fact["words"]) for fact in facts) / len(facts)


def instructions_found(rows: Sequence[dict[str, Any]]) -> float:
    """Return the share of standing instructions that are found verbatim in the user message that holds them."""
    found = [row["text"] in standing_instructions([text_message("m", "user", row["context"])]) for row in rows]
    return sum(found) / len(found)


def taken_for_instructions(rows: Sequence[dict[str, Any]]) -> float:
    """Return the share of ordinary sentences in which an instruction is found."""
    found = [bool(standing_instructions([text_message("m", "user", row["text"])])) for row in rows]
    return sum(found) / len(found)


def identifiers_kept(rows: Sequence[dict[str, Any]], together: int = 10, tokens: int = 400) -> float:
    """Return the share of planted identifiers in the summary or its hints, `together` messages to a summary."""
    kept = 0
    for start in range(0, len(rows), together):
        some = rows[start : start + together]
        messages = tuple(text_message(f"m{number}", "user", row["text"]) for number, row in enumerate(some))
        request = SummaryRequest(
            messages=messages, mode="sliding_window", frame="frame", max_tokens=tokens, max_chars=PLENTY
        )
        summary = extract(request, count_text)
        kept += sum(row["identifier"] in summary for row in some)
    return kept / len(rows)


class Locomo:
    """LoCoMo's dialogues and its survival figure, by the shared tools; `folder` takes what they write."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._summaries: dict[tuple[str, float], str] = {}
        self._tool("locomo_transcripts.py", str(LOCOMO), str(folder / "dialogues"))
        self.dialogues = {file.stem: messages_of(file) for file in sorted((folder / "dialogues").glob("*.json"))}

    @staticmethod
    def present() -> bool:
        """Return whether the data is beside this checkout."""
        return LOCOMO.is_file()

    def answers_kept(self, share: float, names: Sequence[str] | None = None) -> float:
        """Return `ans_all` over the dialogues of these names (default: all): the share of questions whose answers' content
        words are all in the summaries.
        """
        chosen = names or list(self.dialogues)
        source, views = self._folder / "source.json", self._folder / "views.jsonl"
        samples = json.loads(LOCOMO.read_text(encoding="utf-8"))
        source.write_text(json.dumps([sample for sample in samples if sample["sample_id"] in chosen]), encoding="utf-8")
        lines = [json.dumps({"sample_id": name, "text": self._summary(name, share)}) for name in chosen]
        views.write_text("\n".join(lines), encoding="utf-8")
        printed = self._tool("locomo_survival.py", str(source), str(views))
        return float(printed.partition("ans_all ")[2].partition(",")[0])

    def _summary(self, name: str, share: float) -> str:
        if (name, share) not in self._summaries:
            self._summaries[name, share] = summary_of(self.dialogues[name], share)
        return self._summaries[name, share]

    @staticmethod
    def _tool(name: str, *arguments: str) -> str:
        command = [sys.executable, str(SHARED / "tools" / name), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
