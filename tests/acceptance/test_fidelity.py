"""What a compaction keeps without any model: facts, standing instructions, identifiers, through a real session."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks import fidelity
from benchmarks.bench_extractive import SHARES

from tests.small_sessions import KEY
from turnfold.config.settings import Settings
from turnfold.messages.model import text_message
from turnfold.ports import Summarizer
from turnfold.providers.scripted import ScriptedModel
from turnfold.runtime.compactor import Compactor
from turnfold.session import Session
from turnfold.stores.memory import MemoryStore
from turnfold.summarizers.model_backed import ModelBackedSummarizer
from turnfold.wiring import make_compactor, new_id

SETTINGS = Settings(context_window=12_000, output_reserve=0, safety_margin=0)
COMPACTIONS = 5
DROPS_EVERYTHING = "The conversation went on. Nothing of note happened."


@pytest.fixture(scope="module")
def locomo(tmp_path_factory: pytest.TempPathFactory) -> fidelity.Locomo:
    """LoCoMo, where it is."""
    if not fidelity.Locomo.present():
        pytest.skip("no LoCoMo beside this checkout (../shared/data)")
    return fidelity.Locomo(tmp_path_factory.mktemp("locomo"))


@pytest.mark.parametrize(("share", "least"), SHARES.items())
def test_answers_survive_in_a_fraction_of_the_dialogue(locomo: fidelity.Locomo, share: float, least: float) -> None:
    """Of the questions about ten long dialogues, a summary of 10 % (20 %) still answers 36 % (58 %)."""
    assert locomo.answers_kept(share) >= least


@pytest.mark.parametrize("dialogue", ["dialogue_zh", "roleplay_zh"])
@pytest.mark.parametrize(("share", "least"), SHARES.items())
def test_planted_facts_survive_in_chinese(dialogue: str, share: float, least: float) -> None:
    """Of the planted facts of a Chinese dialogue as much survives; the second has a fact every 90 tokens."""
    dense = 0.02 if dialogue == "roleplay_zh" else 0.0
    assert fidelity.facts_kept(dialogue, share) >= least - dense


@pytest.mark.parametrize("name", ["standing_instructions", "standing_instructions_second"])
def test_standing_instructions_are_found_wherever_they_stand(name: str) -> None:
    """At least 95 % are found, verbatim, in whatever else the message says."""
    assert fidelity.instructions_found(fidelity.rows_of(f"{name}.jsonl")) >= 0.95


@pytest.mark.parametrize("name", ["ordinary_sentences", "ordinary_sentences_second"])
def test_ordinary_sentences_are_no_instructions(name: str) -> None:
    """At most 5 % of sentences with the same words in them are taken for one."""
    assert fidelity.taken_for_instructions(fidelity.rows_of(f"{name}.jsonl")) <= 0.05


def test_identifiers_are_in_the_summary_or_its_hints() -> None:
    """At least 95 % of planted paths, URLs, ports, ids and names, where the allowance permits it."""
    assert fidelity.identifiers_kept(fidelity.rows_of("identifiers.jsonl")) >= 0.95


def compactor(summarizer: Callable[[Compactor], Summarizer] | None) -> Compactor:
    """The default compactor, with another summarizer."""
    made = make_compactor(SETTINGS)
    return Compactor(
        counter=made.counter,
        summarizer=summarizer(made) if summarizer else made.summarizer,
        fallback=made.fallback,
        policy=made.policy,
        clock=made.clock,
        new_frame=made.new_frame,
    )


def drops_everything(made: Compactor) -> Summarizer:
    """A model that keeps nothing of what it reads."""
    model = ScriptedModel(lambda _: DROPS_EVERYTHING, context_window=100_000)
    return ModelBackedSummarizer(model, made.counter)


@pytest.mark.parametrize("summarizer", [None, drops_everything], ids=["extractive", "drops_everything"])
async def test_standing_instructions_stand_after_five_compactions(
    summarizer: Callable[[Compactor], Summarizer] | None,
) -> None:
    """Whoever writes the summary, the user's instructions are in the view verbatim after five compactions, newest last."""
    rows = [row for row in fidelity.rows_of("standing_instructions_second.jsonl") if row["held_out"]][::3]
    wanted = [row for row in rows if fidelity.instructions_found([row])]
    assert len(wanted) >= 15
    made = compactor(summarizer)
    versions = set()
    async with Session(MemoryStore(), KEY, made, budget=SETTINGS.budget(exact=True), new_id=new_id) as session:
        for row in wanted:
            await session.say(row["context"])
            await session.reply(text_message(new_id(), "assistant", "Understood."))
        for number in range(COMPACTIONS * 6):
            await session.say(f"Step {number}: what does the log of service {number * 7} say? " + filler(number))
            await session.prepare()
            await session.reply(
                text_message(new_id(), "assistant", f"It says code {number + 300}. " + filler(number + 99))
            )
            if number % 6 == 5:
                prepared = await session.compact()
                versions.add(prepared.version)
        view = "\n".join(message.text for message in (await session.prepare()).messages)
    assert len(versions) == COMPACTIONS
    places = [view.find(shown(row["text"])) for row in wanted]
    assert -1 not in places, [row["text"] for row, place in zip(wanted, places, strict=True) if place < 0]
    assert places == sorted(places)


def shown(text: str) -> str:
    """A text as it stands in the envelope, which is JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def filler(number: int) -> str:
    """Some 60 words that say nothing twice."""
    return " ".join(f"word{number}x{index}" for index in range(60))


@pytest.mark.parametrize("first", [0, 1])
def test_the_halves_of_the_dialogues_agree(locomo: fidelity.Locomo, first: int) -> None:
    """The figure is no accident of some dialogues: either half of them reaches it."""
    assert locomo.answers_kept(0.1, sorted(locomo.dialogues)[first::2]) >= SHARES[0.1]


def test_the_data_is_whole() -> None:
    """The figures are about as many rows as they say."""
    assert len(fidelity.rows_of("standing_instructions_second.jsonl")) == 100
    assert (
        len(fidelity.rows_of("ordinary_sentences.jsonl") + fidelity.rows_of("ordinary_sentences_second.jsonl")) >= 400
    )
    assert len(fidelity.rows_of("identifiers.jsonl")) >= 200
    assert len(fidelity.messages_of(Path(fidelity.DATA) / "roleplay_zh.json")) == 200
