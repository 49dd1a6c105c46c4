"""`turnfold prepare` and `checkpoints --explain` as a shell sees them: documents, exit codes, and what the store keeps."""

import json
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance import in_process

TURNFOLD = Path(sysconfig.get_path("scripts")) / "turnfold"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "chat"
FILES = ("--scenario", str(EXAMPLES / "scenario.json"), "--models", str(EXAMPLES / "models.json"), "--actor", "actor")


def turnfold(*words: str, stdin: str = "", code: int = 0) -> str:
    """Run the command line; its standard output, or its standard error where it fails."""
    done = in_process.turnfold(*words, stdin=stdin)
    assert done.code == code, done.out + done.err
    return done.err if code == 2 else done.out


def example() -> Any:
    """The request among the examples."""
    return json.loads((EXAMPLES / "request.json").read_text(encoding="utf-8"))


def prepared(request: Any, store: Path, *words: str, code: int = 0) -> Any:
    """What `turnfold prepare --json` says of a request."""
    files = words or FILES
    return json.loads(
        turnfold("prepare", "-", *files, "--store", str(store), "--json", stdin=json.dumps(request), code=code)
    )


def test_a_request_is_compacted_stored_found_and_explained(tmp_path: Path) -> None:
    """The promise of the copper key is in the summary, the new line is in none; the next request finds the checkpoint."""
    store, request = tmp_path / "chat.db", example()
    first = prepared(request, store)
    assert (first["outcome"], first["persistence"], first["version"]) == ("compacted", "saved", 1)
    assert first["tokens"] <= first["budget"]["triggerLine"] < first["tokensBefore"] <= first["budget"]["inputBudget"]
    assert first["budget"] == {
        "contextWindow": 2700, "outputReserve": 512, "safetyMargin": 512, "inputBudget": 1676, "triggerLine": 1340
    }  # fmt: skip
    assert "钥匙" in first["summary"]
    assert "我回来还钥匙了" not in first["summary"]
    assert first["messages"][-1] == {"role": "user", "content": "我回来还钥匙了。"}
    assert first["messages"][0] == request["fixedPrompt"][0]
    assert first["messageIds"][-3:] == ["a30", "injected[0]", "incoming[0]"]
    again = prepared(request, store)
    assert (again["outcome"], again["persistence"], again["version"]) == ("reused", "not_needed", 1)
    assert again["messages"] == first["messages"]

    where = ("--store", str(store), "--user", "mei", "-c", "copper-key", "--scenario", "scenario")
    listed = json.loads(turnfold("checkpoints", *where, "--json"))
    assert [row["version"] for row in listed["checkpoints"]] == [1]
    record = json.loads(turnfold("checkpoints", *where, "--explain", "1", "--json"))
    audit, coverage = record["checkpoint"]["audit"], record["checkpoint"]["coverage"]
    assert (audit["summarizer"], audit["counter"], audit["calls"], audit["candidates"]) == (
        "extractive",
        "o200k_base",
        0,
        1,
    )
    assert (audit["tokens_before"], audit["tokens_after"]) == (first["tokensBefore"], first["tokens"])
    assert (coverage["first_id"], coverage["last_id"]) == ("u01", f"a{coverage['count'] // 2:02}")
    assert set(audit) >= {"model", "prompt_hash", "milliseconds", "not_shown", "retention", "trigger", "mode", "usage"}
    told = turnfold("checkpoints", *where, "--explain", "1")
    for part in (
        "summarizer extractive",
        "0 model calls",
        f"{coverage['count']} messages, u01 to",
        "retention",
        "masks",
    ):
        assert part in told
    assert "no checkpoint" in turnfold("checkpoints", *where, "--explain", "0", code=2)


def test_an_edit_and_another_type_of_request(tmp_path: Path) -> None:
    """An edited message under the summary is noticed; a request type that may not write stores nothing."""
    store, request = tmp_path / "chat.db", example()
    prepared(request, store)
    request["history"][2]["content"] = "我改主意了，钥匙明天再还。"
    preview = prepared({**request, "requestType": "preview"}, store)
    assert (preview["outcome"], preview["persistence"], preview["version"]) == ("compacted", "not_allowed", None)
    edited = prepared(request, store)
    assert (edited["outcome"], edited["persistence"], edited["version"]) == ("compacted", "saved", 2)
    assert "edited" in {reason["code"] for reason in edited["reasons"]}


def test_everything_may_be_inside_the_request(tmp_path: Path) -> None:
    """Scenario, models and actor may stand in the request; a scripted model stands in for the one that summarizes."""
    scenario = json.loads((EXAMPLES / "scenario.json").read_text(encoding="utf-8"))
    models = json.loads((EXAMPLES / "models.json").read_text(encoding="utf-8"))
    models["models"]["summaries"] = {"provider": "scripted", "replies": ["莉娅借出铜钥匙，用户承诺天黑前归还。"]}
    inside = {"scenario": "line", "scenarioConfig": scenario, "modelConfigs": models, "actorModelConfigId": "actor"}
    result = prepared({**example(), **inside}, tmp_path / "chat.db", "--json")
    assert (result["outcome"], result["persistence"], result["calls"]) == ("compacted", "saved", 1)
    assert result["summary"].startswith("莉娅借出铜钥匙，用户承诺天黑前归还。")


def test_a_failing_model_still_serves_the_turn(tmp_path: Path) -> None:
    """An answer that is no summary gives the original request where it fits, and the reasons say why."""
    models = json.loads((EXAMPLES / "models.json").read_text(encoding="utf-8"))
    models["models"]["summaries"] = {"provider": "scripted", "replies": ["   "]}
    (tmp_path / "models.json").write_text(json.dumps(models), encoding="utf-8")
    words = (*FILES[:3], str(tmp_path / "models.json"), *FILES[4:])
    result = prepared(example(), tmp_path / "chat.db", *words)
    assert (result["outcome"], result["persistence"], result["calls"]) == ("unchanged", "not_needed", 2)
    assert "blank" in {reason["code"] for reason in result["reasons"]}


def test_a_request_that_cannot_fit_says_what_is_large(tmp_path: Path) -> None:
    """Exit code 5, and one JSON document with the budget and the largest parts."""
    request = {**example(), "fixedPrompt": [{"role": "system", "content": "莉娅" * 2000}]}
    document = prepared(request, tmp_path / "chat.db", code=5)
    assert document["outcome"] == "overflow"
    assert document["parts"][0]["name"] == "the system prompt"
    assert document["floor"] > document["inputBudget"]


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        (("prepare",), "", "no request was given"),
        (("prepare", "nowhere.json"), "", "it cannot be read"),
        (("prepare", "-"), "{", "it is not JSON"),
        (("prepare", "-"), '{"conversationId": "c"}', "--scenario FILE"),
        (("prepare", "-", *FILES[:-1], "actr"), '{"conversationId": "c"}', "Did you mean 'actor'?"),
        (("prepare", "-", *FILES), '{"conversationId": "c", "groups": []}', "boundaryMode is not explicit_groups"),
    ],
)
def test_a_request_that_cannot_be_used_is_refused(
    words: tuple[str, ...], stdin: str, said: str, tmp_path: Path
) -> None:
    """Exit code 2, one clear message, and no store is made."""
    message = turnfold(*words, stdin=stdin, code=2)
    assert said in " ".join(message.split())
    assert "Traceback" not in message
    assert not list(tmp_path.iterdir())


def test_a_real_process_reads_standard_input(tmp_path: Path) -> None:
    """As a shell runs it: the request comes from a pipe, the document is all of standard output."""
    words = [str(TURNFOLD), "prepare", "-", *FILES, "--store", str(tmp_path / "chat.db"), "--json"]
    done = subprocess.run(words, input=json.dumps(example()).encode(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["outcome"] == "compacted"
