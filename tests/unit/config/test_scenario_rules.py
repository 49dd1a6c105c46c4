"""The rules of scenarios: each is said with path, value, reason and cure, and all of them at once."""

import copy
from typing import Any

import pytest

from tests.unit.config.scenario_documents import ABSENT, SEED, seed_with
from turnfold.config.scenario import check_scenario

LIMITS: list[tuple[str, list[Any], list[Any]]] = [
    ("triggerRatio", [0.01, 0.999], [0, 1, 1.0, -0.1, 2, True, "0.8", None, [], {}]),
    ("keepLastCanonicalGroups", [0, 1, 100, 2.0], [-1, 101, 0.5, False, "2", None]),
    ("checkpointMutationTimeoutMs", [1000, 10_000], [999, 10_001, 0, True, "5000", None]),
    ("safetyMarginTokens", [0, 512], [-1, 1.5, True, None]),
    ("maxSummaryTokens", [1, 700], [0, -700, 2**31, True, None]),
    ("enabled", [True, False], [0, 1, "true", None]),
    ("compactorModelConfigId", ["m", "摘要"], ["", 1, None, "x" * 501]),
    ("boundaryMode", ["selected_turns", "explicit_groups"], ["turns", "", 1, None]),
    ("profile", ["configurable-v2"], ["configurable-v1", "Configurable-V2", None]),
    ("inputProtocol", ["dream_text_v0", "harness_json_v1", "automemory_recursive_v1"], ["transcript", 1, None]),
    ("outputFormat", ["plain_text"], ["json", True, None]),
    ("lengthPolicy", ["reject", "accept_bounded"], ["accept", False, None]),
    ("executionPolicy", ["bounded_recent"], ["sliding_window", None]),
    ("reliability", [SEED["compact"]["reliability"]], [None, [], True, "v1.1"]),
]
BOUNDS = ["minGenerationTokens", "maxCandidateAttempts", "maxModelCalls", "maxCompactionMs"]


def said(document: Any) -> dict[str, str]:
    """The problems of a document by path."""
    return {problem.path: str(problem) for problem in check_scenario(document)}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, right, _ in LIMITS for value in right])
def test_a_value_within_its_limits_is_taken(field: str, value: Any) -> None:
    """The limits themselves are allowed where the rule says so."""
    assert said(seed_with("compact", field, value=value)) == {}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, _, wrong in LIMITS for value in wrong])
def test_a_value_beyond_its_limits_is_said_once(field: str, value: Any) -> None:
    """A wrong value gives one problem at its own path, with what to give instead; no rule about it is guessed."""
    (problem,) = check_scenario(seed_with("compact", field, value=value))
    assert problem.path == f"compact.{field}"
    assert problem.cure.startswith("Give ")


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("value", [-1, 0.5, True, "256", None, ABSENT])
def test_bounds_are_counts(bound: str, value: Any) -> None:
    """Each bound of `reliability` must be given, as a whole number."""
    assert list(said(seed_with("compact", "reliability", bound, value=value))) == [f"compact.reliability.{bound}"]


@pytest.mark.parametrize("bound", BOUNDS[1:])
def test_a_bound_of_nothing_is_refused(bound: str) -> None:
    """No candidate, no call and no time would switch compaction off without saying so."""
    assert list(said(seed_with("compact", "reliability", bound, value=0))) == [f"compact.reliability.{bound}"]


@pytest.mark.parametrize(
    ("path", "near"),
    [
        (("compact", "triggerRatios"), "triggerRatio"),
        (("compact", "trigger_ratio"), "triggerRatio"),
        (("compact", "TRIGGERRATIO"), "triggerRatio"),
        (("compact", "reliability", "maxModelCall"), "maxModelCalls"),
        (("compact", "maxModelCalls"), "belongs to compact.reliability"),
        (("compact", "kind"), "belongs to the top of the document"),
        (("triggerRatio",), "belongs to compact"),
        (("contextGovernence",), "contextGovernance"),
        (("zzz",), "The fields are: kind, contextGovernance, compact"),
    ],
)
def test_an_unknown_field_is_refused_with_what_was_meant(path: tuple[str, ...], near: str) -> None:
    """At every level the nearest known name is given, or where the name belongs."""
    problems = said(seed_with(*path, value=1))
    assert list(problems) == [".".join(path)]
    assert near in problems[".".join(path)]


def test_content_policy_points_at_the_prompt_preset() -> None:
    """The retired field is refused with what replaces it."""
    assert "promptPreset" in said(seed_with("compact", "contentPolicy", value={}))["compact.contentPolicy"]


@pytest.mark.parametrize("field", ["inputProtocol", "outputFormat", "lengthPolicy", "executionPolicy", "recursive"])
@pytest.mark.parametrize("profile", [ABSENT, "generic-json-v1"])
def test_only_configurable_v2_chooses(field: str, profile: Any) -> None:
    """Each protocol field under the other profile is a problem of its own."""
    right = {**SEED["compact"], "recursive": {"segmentContentTokens": 500}, "inputProtocol": "automemory_recursive_v1"}
    document = {"compact": {**right, "profile": profile} if profile is not ABSENT else right}
    if profile is ABSENT:
        document = copy.deepcopy(document)
        del document["compact"]["profile"]
    problem = said(document)[f"compact.{field}"]
    assert "only the profile configurable-v2 takes this field" in problem


def test_configurable_v2_needs_its_bounds() -> None:
    """The profile that chooses must say how much it may cost, and is told the defaults of the other."""
    problems = said(seed_with("compact", "reliability", value=ABSENT))
    assert list(problems) == ["compact.reliability"]
    assert '"maxModelCalls":2' in problems["compact.reliability"]


def test_only_configurable_v2_keeps_no_group() -> None:
    """0 groups kept need the profile that chooses; under the other one the value is said."""
    assert said(seed_with("compact", "keepLastCanonicalGroups", value=0)) == {}
    generic = {"compact": {"enabled": True, "compactorModelConfigId": "m", "keepLastCanonicalGroups": 0}}
    assert list(said(generic)) == ["compact.keepLastCanonicalGroups"]


@pytest.mark.parametrize("output", ["structured_json", ABSENT])
def test_a_cut_summary_must_be_plain_text(output: Any) -> None:
    """`accept_bounded` with JSON, named or by default, is refused at the output format."""
    assert list(said(seed_with("compact", "outputFormat", value=output))) == ["compact.outputFormat"]


@pytest.mark.parametrize("protocol", ["dream_text_v0", "harness_json_v1", ABSENT])
def test_segments_need_their_protocol(protocol: Any) -> None:
    """`recursive` without `automemory_recursive_v1` is refused."""
    document = seed_with("compact", "inputProtocol", value=protocol)
    document["compact"]["recursive"] = {"segmentContentTokens": 500}
    assert list(said(document)) == ["compact.inputProtocol"]


def test_a_kind_has_its_own_rules() -> None:
    """v2 with compaction needs contextGovernance, sumi takes no compaction, and without a kind neither holds."""
    assert said(SEED) == {}
    assert list(said({**SEED, "kind": "v2"})) == ["contextGovernance"]
    assert said({**SEED, "kind": "v2", "contextGovernance": {"mode": "enforce"}}) == {}
    assert said({"kind": "v2", "compact": {"enabled": False}}) == {}
    assert list(said({**SEED, "kind": "sumi"})) == ["compact"]
    assert list(said({"kind": "sumi", "compact": {"enabled": False}})) == ["compact"]
    assert said({"kind": "sumi"}) == {}
    assert list(said({"kind": "v1"})) == ["kind"]


def test_compaction_needs_a_model_only_when_it_is_on() -> None:
    """`compactorModelConfigId` is required where compaction is on, and not where it is off."""
    assert list(said(seed_with("compact", "compactorModelConfigId", value=ABSENT))) == [
        "compact.compactorModelConfigId"
    ]
    assert said({"compact": {"enabled": False, "profile": "configurable-v2"}}) == {}
    assert list(said({"compact": {}})) == ["compact.enabled"]


def test_all_is_said_at_once() -> None:
    """Types, limits, unknown names and rules that depend on one another come in one answer."""
    document = {
        "kind": "v2",
        "compact": {
            "enabled": True,
            "triggerRatio": True,
            "keepLastCanonicalGroups": 0,
            "lengthPolicy": "accept_bounded",
            "recursive": {"segmentContentTokens": 0},
            "contentPolicy": "x",
        },
    }
    assert [problem.path for problem in check_scenario(document)] == [
        "compact.triggerRatio",
        "compact.recursive.segmentContentTokens",
        "compact.contentPolicy",
        "compact.compactorModelConfigId",
        "compact.keepLastCanonicalGroups",
        "compact.lengthPolicy",
        "compact.recursive",
        "compact.outputFormat",
        "compact.inputProtocol",
        "contextGovernance",
    ]


def test_no_rule_is_guessed_from_a_wrong_value() -> None:
    """While the profile itself is wrong, what depends on it is not complained of."""
    document = seed_with("compact", "profile", value="configurable-v3")
    document["compact"]["keepLastCanonicalGroups"] = 0
    assert list(said(document)) == ["compact.profile"]


def test_a_problem_shows_the_value() -> None:
    """The sentence has path, value, reason and cure; a long value is cut."""
    assert said(seed_with("compact", "triggerRatio", value=1.5))["compact.triggerRatio"] == (
        "compact.triggerRatio: 1.5: it is too large. Give a number greater than 0 and less than 1."
    )
    (problem,) = check_scenario({"kind": "长" * 500})
    assert len(problem.value) == 80
