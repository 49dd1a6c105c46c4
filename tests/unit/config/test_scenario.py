"""Scenario files: what is written is kept as it was, and what is not there takes the documented defaults."""

import json
import tomllib
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.config.scenario_documents import SEED, documents
from turnfold.config.documents import Syntax, read_document
from turnfold.config.scenario import (
    GENERIC_BOUNDS,
    Scenario,
    check_scenario,
    load_scenario,
    scenario_document,
    scenario_of,
)
from turnfold.core.policy import Policy
from turnfold.errors import ConfigError

SYNTAXES: tuple[Syntax, ...] = ("JSON", "TOML")


def problems_of(data: bytes, syntax: Syntax = "JSON") -> tuple[str, ...]:
    """The problems of a file's bytes."""
    with pytest.raises(ConfigError) as caught:
        load_scenario(data, syntax)
    return caught.value.problems


def test_the_seeds_block_loads_unchanged_and_comes_back() -> None:
    """The roleplay product's own configuration is read as it stands and written with the same keys, values and order."""
    written = json.dumps(scenario_document(load_scenario(json.dumps(SEED).encode())))
    assert written == json.dumps(SEED)


def test_the_seeds_block_means_what_it_says() -> None:
    """Each field reaches the policy that decides."""
    scenario = scenario_of(SEED)
    policy = scenario.policy()
    assert (scenario.enabled, scenario.mode, scenario.explicit_groups) == (True, "enforce", False)
    assert (scenario.trigger_ratio, scenario.safety_margin, scenario.mutation_timeout_ms) == (0.8, 512, 5000)
    assert policy == Policy(
        planner="bounded_recent",
        mask_tool_results=False,
        keep_last_groups=2,
        max_summary_tokens=700,
        input_protocol="dream_text_v0",
        output_format="plain_text",
        length_policy="accept_bounded",
        min_generation_tokens=256,
        max_candidate_attempts=24,
        max_model_calls=2,
        max_compaction_ms=120_000,
        summary_form="plain",
        fallback_on_failure=False,
    )


def test_a_generic_scenario_has_its_documented_defaults() -> None:
    """`generic-json-v1` is harness_json_v1, structured_json and reject, with the documented bounds."""
    scenario = scenario_of({"compact": {"enabled": True, "compactorModelConfigId": "m"}})
    policy = scenario.policy()
    assert (policy.input_protocol, policy.output_format, policy.length_policy) == (
        "harness_json_v1",
        "structured_json",
        "reject",
    )
    assert (policy.planner, policy.keep_last_groups, policy.max_summary_tokens) == ("bounded_recent", 2, None)
    bounds = (
        policy.min_generation_tokens,
        policy.max_candidate_attempts,
        policy.max_model_calls,
        policy.max_compaction_ms,
    )
    assert bounds == (256, 24, 2, 120_000)
    assert bounds == msgspec.structs.astuple(GENERIC_BOUNDS)[1:]
    assert (scenario.trigger_ratio, scenario.safety_margin, scenario.mutation_timeout_ms) == (0.8, None, None)


@pytest.mark.parametrize("document", [{}, {"compact": {"enabled": False}}, {"contextGovernance": {"mode": "shadow"}}])
def test_compaction_is_off_unless_it_is_on(document: dict[str, Any]) -> None:
    """No compact block, or one that says so, is a scenario without compaction; nothing more is required of it."""
    scenario = scenario_of(document)
    assert not scenario.enabled
    assert scenario_document(scenario) == document


def test_toml_says_the_same() -> None:
    """A scenario in TOML is the scenario in JSON."""
    text = '[compact]\nenabled = true\ncompactorModelConfigId = "m"\n[contextGovernance]\nmode = "shadow"\n'
    assert load_scenario(text.encode(), "TOML") == scenario_of(tomllib.loads(text))


def test_a_scenario_cannot_be_changed() -> None:
    """Values are frozen: a runtime's configuration does not change under it."""
    scenario = scenario_of(SEED)
    with pytest.raises(AttributeError):
        scenario.kind = "v2"  # type: ignore[misc]


@given(documents(Scenario))
def test_whatever_is_right_comes_back_as_it_was(document: Any) -> None:
    """A document without problems round-trips: the same keys and values, nothing added, nothing dropped."""
    if not check_scenario(document):
        assert scenario_document(scenario_of(document)) == document


@given(documents(Scenario))
def test_every_problem_is_said_and_none_raises_anything_else(document: Any) -> None:
    """Problems name place, value, reason and cure; a document with problems is refused with exactly these."""
    problems = check_scenario(document)
    assert all(problem.value and problem.reason and problem.cure for problem in problems)
    if problems:
        with pytest.raises(ConfigError) as caught:
            scenario_of(document)
        assert caught.value.problems == tuple(map(str, problems))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it is not JSON"),
        (b"{", "line 1, column 2"),
        (b"\xff\xfe{\x00}\x00", "it is UTF-16 text. Save it as UTF-8."),
        (b'{"a": "\xff"}', "byte 8 is not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "it is a list. Give an object."),
        (b'"compact"', "it is text. Give an object."),
        (b"null", "it is null"),
        (b'{"compact": []}', "compact: []: it is a list. Give an object."),
        (
            b'{"compact": {"enabled": true, "enabled": false}}',
            "compact.enabled: false: the key stands there more than once",
        ),
        (b'{"kind": "v2", "kind": "v2"}', 'kind: "v2": the key stands there more than once'),
        (
            b'{"compact": {"enabled": false, "triggerRatio": NaN}}',
            "compact.triggerRatio: NaN: it is not a finite number",
        ),
        (
            b'{"compact": {"enabled": false, "triggerRatio": 1e999}}',
            "compact.triggerRatio: Infinity: it is not a finite",
        ),
        (b'{"compact": {"enabled": false, "maxSummaryTokens": -Infinity}}', "it is not a finite number"),
        (b'{"compact": {"enabled": false, "maxSummaryTokens": %s}}' % (b"9" * 5000), "it is not a finite number"),
        (b'{"compact": {"enabled": false, "maxSummaryTokens": 99999999999999999999}}', "it is too large"),
        (b'{"compact": {"enabled": false, "compactorModelConfigId": "\\ud800"}}', "half a character"),
        (b'{"compact": {"enabled": false, "": 1}}', 'compact[""]: 1: there is no such field'),
    ],
)
def test_what_a_reader_would_hide_is_said(data: bytes, said: str) -> None:
    """Broken bytes, repeated keys and numbers that nothing holds are problems with a place, never a traceback."""
    assert any(said in problem for problem in problems_of(data)), problems_of(data)


def test_a_byte_order_mark_is_passed_over() -> None:
    """Editors that write one do not break a configuration."""
    assert load_scenario(b"\xef\xbb\xbf{}") == Scenario()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("compact = 1979-05-27", 'compact: "1979-05-27": it is a date. Give an object.'),
        ("[compact]\nenabled = false\ntriggerRatio = nan", "compact.triggerRatio: NaN: it is not a finite number"),
        ("[compact]\nenabled = 07:32:00", "it is a time, not true or false"),
        ("a = 1\na = 2", "it is not TOML"),
        ("a = ", "it is not TOML"),
    ],
)
def test_what_only_toml_can_say_is_refused(text: str, said: str) -> None:
    """Dates, nan and TOML's own errors are problems with a place."""
    assert any(said in problem for problem in problems_of(text.encode(), "TOML"))


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """No file, however broken, raises anything but ConfigError."""
    for syntax in SYNTAXES:
        with suppress(ConfigError):
            read_document(data, syntax)
