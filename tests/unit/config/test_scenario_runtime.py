"""From a scenario and model configurations to a Compact runtime: nothing between what is written and what is in force."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.unit.config.scenario_documents import MODELS, SEED, seed_with
from turnfold.config.models import Models, models_of
from turnfold.config.request import request_of
from turnfold.config.scenario import Scenario, scenario_of
from turnfold.core.budget import Budget
from turnfold.errors import ConfigError, ContextOverflowError, NotFoundError
from turnfold.messages.model import Message, text_message
from turnfold.providers.scripted import ScriptedModel
from turnfold.runtime.requests import CompactRequest
from turnfold.summarizers.extractive import ExtractiveSummarizer
from turnfold.summarizers.model_backed import ModelBackedSummarizer
from turnfold.summarizers.prompt_files import load_prompts
from turnfold.wiring import compact_request, memory_store, open_compact_runtime


def registry(**summaries: Any) -> Models:
    """A registry whose summarizer is as given, with an actor of 8,192 tokens."""
    seed_id = SEED["compact"]["compactorModelConfigId"]
    return models_of({"models": {**MODELS["models"], seed_id: summaries or {"provider": "extractive"}}})


def history(turns: int) -> tuple[Message, ...]:
    """A conversation of about 45 tokens a turn."""
    messages = []
    for number in range(turns):
        messages.append(
            text_message(f"u{number}", "user", f"第{number}天，我把铜钥匙的事又问了一遍莉娅，城门还没有关。")
        )
        messages.append(
            text_message(f"a{number}", "assistant", f"第{number}天我也说过，天黑前一定要还，登记簿上写着。")
        )
    return tuple(messages)


def request(turns: int, **fields: Any) -> CompactRequest:
    """A request with the seed's new line."""
    line = text_message("new", "user", "我回来还钥匙了。")
    return CompactRequest(conversation_id="c", history=history(turns), incoming=(line,), **fields)


async def test_the_seeds_arithmetic() -> None:
    """A window of 8,192, a reserve of 2,048 and a margin of 512 at 0.8 give 5,632 and 4,505."""
    async with (
        memory_store() as store,
        open_compact_runtime(store, scenario_of(SEED), registry(), actor="actor") as runtime,
    ):
        budget = runtime.budget(request(1))
        assert (budget.input_budget, budget.trigger_line) == (5632, 4505)
        assert runtime.budget(request(1, max_output=1024)).input_budget == 6656
        assert (await runtime.prepare(request(70))).outcome == "unchanged"
        compacted = await runtime.prepare(request(150))
        assert (compacted.outcome, compacted.persistence) == ("compacted", "saved")
        assert compacted.tokens_before > 4505 >= compacted.tokens


async def test_what_is_left_out_takes_the_documented_defaults() -> None:
    """Without a margin 2 % of the window is kept free, without a maximum output the smaller of 16,384 and 20 %."""
    scenario = scenario_of({"compact": {"enabled": True, "compactorModelConfigId": "offline"}})
    actor = {"provider": "openai_compatible", "model": "m", "contextWindow": 10_000}
    models = models_of(
        {"models": {"offline": {"provider": "extractive"}, "a": actor, "b": {**actor, "counter": "chars4"}}}
    )
    async with memory_store() as store, open_compact_runtime(store, scenario, models, actor="a") as runtime:
        expected = Budget(context_window=10_000, output_reserve=2_000, safety_margin=200, trigger_ratio=0.8)
        assert runtime.budget(request(1)) == expected
        assert (runtime.options.mode, runtime.options.mutation_timeout_ms, runtime.options.explicit_groups) == (
            "enforce",
            None,
            False,
        )
        assert isinstance(runtime.compactor.summarizer, ExtractiveSummarizer)
    async with memory_store() as store, open_compact_runtime(store, scenario, models, actor="b") as runtime:
        assert (runtime.compactor.counter.name, runtime.options.safety_margin) == ("chars4", 500)


async def test_a_scripted_summarizer_is_asked_as_a_model_is() -> None:
    """It goes through prompts and protocol; the new line is in the material as what has not happened yet."""
    models = registry(provider="scripted", replies=["莉娅借出铜钥匙，承诺天黑前归还。"], contextWindow=16_000)
    async with (
        memory_store() as store,
        open_compact_runtime(store, scenario_of(SEED), models, actor="actor") as runtime,
    ):
        prepared = await runtime.prepare(request(150))
        assert (prepared.outcome, prepared.calls) == ("compacted", 1)
        assert (prepared.summary or "").startswith("莉娅借出铜钥匙")
        assert isinstance(runtime.compactor.summarizer, ModelBackedSummarizer)
        assert runtime.options.preset_hash == load_prompts().hash
        model = runtime.compactor.summarizer.model
        assert isinstance(model, ScriptedModel)
        material = model.requests[0].messages[-1].text
        before, _, after = material.partition("Current input (has not happened yet)")
        assert "我回来还钥匙了。" in after
        assert "我回来还钥匙了。" not in before


async def test_other_prompts_make_old_summaries_unusable(tmp_path: Path) -> None:
    """A preset is a folder beside the models' file; its hash is part of what must be equal."""
    own = tmp_path / "mine"
    own.mkdir()
    (own / "bounded_recent.md").write_text("<!-- version 2: ours -->\n只记约定。\n", encoding="utf-8")
    models = registry(provider="scripted", replies=["天黑前归还。"], contextWindow=16_000, promptPreset="mine")
    plain = registry(provider="scripted", replies=["天黑前归还。"], contextWindow=16_000)
    async with memory_store() as store:
        async with open_compact_runtime(store, scenario_of(SEED), plain, actor="actor") as runtime:
            assert (await runtime.prepare(request(150))).version == 1
        async with open_compact_runtime(
            store, scenario_of(SEED), models, actor="actor", presets_in=tmp_path
        ) as runtime:
            assert runtime.options.preset_hash.startswith("p2:")
            again = await runtime.prepare(request(150))
            assert (again.outcome, again.version) == ("compacted", 2)
            assert "fingerprint" in {reason.code for reason in again.reasons}
        shutil.rmtree(own)
        with pytest.raises(NotFoundError, match="mine"):
            async with open_compact_runtime(store, scenario_of(SEED), models, actor="actor", presets_in=tmp_path):
                pass


async def test_shadow_reports_and_stores_nothing() -> None:
    """`contextGovernance: shadow` sends the original."""
    shadow = scenario_of({**SEED, "contextGovernance": {"mode": "shadow"}})
    async with memory_store() as store, open_compact_runtime(store, shadow, registry(), actor="actor") as runtime:
        prepared = await runtime.prepare(request(100))
        assert (prepared.outcome, prepared.persistence, prepared.version) == ("shadow", "not_needed", None)
        assert len(prepared.messages) == 201


@pytest.mark.parametrize("document", [{}, {"compact": {"enabled": False}}])
async def test_off_is_off(document: dict[str, Any]) -> None:
    """Without compaction nothing is stored, and what does not fit is an error."""
    scenario: Scenario = scenario_of(document)
    async with memory_store() as store, open_compact_runtime(store, scenario, registry(), actor="actor") as runtime:
        assert (await runtime.prepare(request(60))).outcome == "unchanged"
        with pytest.raises(ContextOverflowError):
            await runtime.prepare(request(400))


async def test_a_key_that_is_not_set_is_said_before_the_first_turn() -> None:
    """A variable that is named and not there is an error of configuration, not a failing call on every turn."""
    endpoint = {"provider": "openai_compatible", "model": "m", "contextWindow": 8192, "apiKeyEnv": "NOT_SET_ANYWHERE"}
    opened = open_compact_runtime(
        memory_store(), scenario_of(SEED), registry(**endpoint), actor="actor", environment={}
    )
    with pytest.raises(ConfigError, match="NOT_SET_ANYWHERE"):
        async with opened:
            pass
    environment = {"NOT_SET_ANYWHERE": "sk-secret"}
    async with open_compact_runtime(
        memory_store(), scenario_of(SEED), registry(**endpoint), actor="actor", environment=environment
    ) as runtime:
        assert "sk-secret" not in repr(runtime.compactor.summarizer)


async def test_all_problems_of_both_files_come_at_once() -> None:
    """A summarizer and an actor that are not there are said together."""
    scenario = scenario_of(seed_with("compact", "compactorModelConfigId", value="nobody"))
    with pytest.raises(ConfigError) as caught:
        async with open_compact_runtime(memory_store(), scenario, registry(), actor="no one"):
            pass
    assert [problem.split(": ")[0] for problem in caught.value.problems] == [
        "compact.compactorModelConfigId",
        "actorModelConfigId",
    ]


async def test_a_margin_that_leaves_nothing_is_said_at_once() -> None:
    """A budget of nothing is an error of configuration, not of every request."""
    scenario = scenario_of(seed_with("compact", "safetyMarginTokens", value=8000))
    with pytest.raises(ConfigError, match="leave nothing"):
        async with open_compact_runtime(memory_store(), scenario, registry(), actor="actor"):
            pass


def test_a_request_file_becomes_the_same_request() -> None:
    """Every field arrives; what is left out is the runtime's own default."""
    assert compact_request(request_of({"conversationId": "c"})) == CompactRequest(conversation_id="c")
    read = compact_request(
        request_of(
            {
                "conversationId": "c",
                "user": "u",
                "tenant": "t",
                "requestType": "preview",
                "roleId": "r",
                "persona": "p",
                "history": [{"id": "u1", "role": "user", "content": "x"}],
                "groups": [["u1"]],
                "maxOutput": 7,
                "checkpointMutationAllowed": True,
            }
        )
    )
    assert (read.user, read.tenant, read.request_type, read.role_id, read.persona) == ("u", "t", "preview", "r", "p")
    assert (read.groups, read.max_output, read.checkpoint_mutation_allowed) == ((("u1",),), 7, True)
    assert [message.id for message in read.history] == ["u1"]
