"""`turnfold scenario` as a shell sees it: what it prints, and its exit codes."""

import json
from pathlib import Path

import pytest

from tests.acceptance.in_process import Done, turnfold

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "chat"


def scenario(*words: str, stdin: str = "") -> Done:
    """Run `turnfold scenario`: exit code, standard output, standard error."""
    return turnfold("scenario", *words, stdin=stdin)


def test_a_scenario_without_problems() -> None:
    """Exit code 0, and what is in force, defaults filled in."""
    code, out, _ = scenario(
        "check", str(EXAMPLES / "scenario.json"), "--models", str(EXAMPLES / "models.json"), "--json"
    )
    document = json.loads(out)
    assert (code, document["problems"]) == (0, [])
    assert document["effective"]["maxSummaryTokens"] == 700
    assert document["effective"]["lengthPolicy"] == "accept_bounded"


def test_every_problem_of_both_files_is_said(tmp_path: Path) -> None:
    """Exit code 1; each problem has its file, path, value, reason and cure, and TOML is read by its ending."""
    (tmp_path / "s.toml").write_text('[compact]\nenabled = true\ntriggerRatio = 1.5\nprofil = "x"\n', encoding="utf-8")
    (tmp_path / "m.json").write_text('{"models": {"m": {"provider": "open"}}}', encoding="utf-8")
    words = ("check", str(tmp_path / "s.toml"), "--models", str(tmp_path / "m.json"))
    code, out, _ = scenario(*words, "--json")
    problems = [(Path(problem["file"]).name, problem["path"]) for problem in json.loads(out)["problems"]]
    assert (code, problems) == (
        1,
        [
            ("s.toml", "compact.triggerRatio"),
            ("s.toml", "compact.profil"),
            ("s.toml", "compact.compactorModelConfigId"),
            ("m.json", "models.m.provider"),
        ],
    )
    code, out, _ = scenario(*words)
    assert code == 1
    assert "s.toml: compact.profil: \"x\": there is no such field. Did you mean 'profile'?" in out


def test_what_only_shows_with_the_models(tmp_path: Path) -> None:
    """A summarizer that is not there, and a preset folder that is not there, are found with `--models` alone."""
    models = {"models": {"x": {"provider": "anthropic", "model": "m", "contextWindow": 1, "promptPreset": "mine"}}}
    (tmp_path / "m.json").write_text(json.dumps(models), encoding="utf-8")
    file = str(EXAMPLES / "scenario.json")
    assert scenario("check", file)[0] == 0
    code, out, _ = scenario("check", file, "--models", str(tmp_path / "m.json"), "--json")
    assert code == 1
    assert [problem["path"] for problem in json.loads(out)["problems"]] == [
        "models.x.promptPreset",
        "compact.compactorModelConfigId",
    ]


@pytest.mark.parametrize(
    ("stdin", "said"), [("", "it is not JSON"), ("\x00", "it is not JSON"), ('{"a": 1', "line 1, column 8")]
)
def test_a_file_that_cannot_be_read_is_bad_input(stdin: str, said: str) -> None:
    """Exit code 2 and one message, no traceback."""
    code, out, err = scenario("check", "-", stdin=stdin)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


def test_the_schemas_are_printed() -> None:
    """Each is one JSON document; two at once is refused."""
    titles = [json.loads(scenario("schema", *words)[1])["title"] for words in ((), ("--request",), ("--models",))]
    assert titles == ["turnfold scenario", "turnfold request", "turnfold model configurations"]
    assert scenario("schema", "--request", "--models")[0] == 2
