"""The scenario: how one product compacts, as its owner wrote it down (SPEC §11).

A `Scenario` holds what was written and nothing else, so it is written back as it was read. What was left out takes the defaults
here when the scenario is used: `policy()`, `mode` and the other methods.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from turnfold.config.checking import NO_LIMIT, Checker, RuleTable
from turnfold.config.documents import Syntax, read_document
from turnfold.config.problems import Problem
from turnfold.config.rules import Rule, absent, among, other_than, present
from turnfold.config.schema import json_schema
from turnfold.core.budget import TRIGGER_RATIO
from turnfold.core.plan import InputProtocol, LengthPolicy, OutputFormat
from turnfold.core.policy import Policy

V = TypeVar("V")

GENERIC: Final = "generic-json-v1"
CONFIGURABLE: Final = "configurable-v2"
KEEP_LAST: Final = 2
MUTATION_TIMEOUT_MS: Final = (1_000, 10_000)

Count = Annotated[int, Meta(ge=1, le=NO_LIMIT)]
CountOrNone = Annotated[int, Meta(ge=0, le=NO_LIMIT)]
Id = Annotated[str, Meta(min_length=1, max_length=500)]


class Reliability(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The bounds of one compaction. Candidates are not calls: a candidate may take none, or several."""

    version: Annotated[Literal["v1.1"], Meta(description="The meaning of these bounds.")]
    min_generation_tokens: Annotated[
        CountOrNone, Meta(description="Tokens that the summarizer's window must leave for its answer.")
    ]
    max_candidate_attempts: Annotated[Count, Meta(description="Candidates tried.")]
    max_model_calls: Annotated[Count, Meta(description="Model calls paid.")]
    max_compaction_ms: Annotated[Count, Meta(description="Milliseconds for all candidates together, not for the turn.")]


GENERIC_BOUNDS: Final = Reliability(
    version="v1.1",
    min_generation_tokens=256,
    max_candidate_attempts=24,
    max_model_calls=2,
    max_compaction_ms=120_000,
)
"""The bounds of a scenario that gives none: the numbers of the roleplay seed's own configuration."""


class Recursive(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How `automemory_recursive_v1` cuts the conversation into segments."""

    segment_content_tokens: Annotated[Count, Meta(description="Tokens of the conversation in one segment, at most.")]


class Compact(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Compaction of the history that requests carry."""

    enabled: Annotated[
        bool, Meta(description="Whether histories are compacted. Off: no checkpoint is read or written.")
    ]
    boundary_mode: (
        Annotated[
            Literal["selected_turns", "explicit_groups"],
            Meta(
                description="What is compacted as a whole: turns found by code, or the groups that a request gives.",
                extra_json_schema={"default": "selected_turns"},
            ),
        ]
        | UnsetType
    ) = UNSET
    compactor_model_config_id: (
        Annotated[Id, Meta(description="The model configuration that writes summaries; not the actor's.")] | UnsetType
    ) = UNSET
    trigger_ratio: (
        Annotated[
            float,
            Meta(
                gt=0,
                lt=1,
                description="Share of the input budget above which a compaction is tried.",
                extra_json_schema={"default": TRIGGER_RATIO},
            ),
        ]
        | UnsetType
    ) = UNSET
    keep_last_canonical_groups: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=100,
                description="Recent groups kept verbatim, at least. 0 needs the profile configurable-v2.",
                extra_json_schema={"default": KEEP_LAST},
            ),
        ]
        | UnsetType
    ) = UNSET
    checkpoint_mutation_timeout_ms: (
        Annotated[
            int,
            Meta(
                ge=MUTATION_TIMEOUT_MS[0],
                le=MUTATION_TIMEOUT_MS[1],
                description="Limit of each checkpoint write in ms. Given: a write that timed out is read back once. "
                "Not given: 2,000 ms, and not read back.",
            ),
        ]
        | UnsetType
    ) = UNSET
    safety_margin_tokens: (
        Annotated[
            CountOrNone,
            Meta(description="Tokens kept free. Not given: 2 % of the window, or 5 % where the counter estimates."),
        ]
        | UnsetType
    ) = UNSET
    max_summary_tokens: (
        Annotated[
            Count, Meta(description="Tokens of the summary's message. Not given: 10 % of the window, at least 120.")
        ]
        | UnsetType
    ) = UNSET
    reliability: (
        Annotated[Reliability, Meta(description="The bounds of one compaction. configurable-v2 must give them.")]
        | UnsetType
    ) = UNSET
    profile: (
        Annotated[
            Literal["generic-json-v1", "configurable-v2"],
            Meta(
                description="generic-json-v1 is harness_json_v1, structured_json and reject; configurable-v2 chooses.",
                extra_json_schema={"default": GENERIC},
            ),
        ]
        | UnsetType
    ) = UNSET
    input_protocol: (
        Annotated[
            Literal["harness_json_v1", "dream_text_v0", "automemory_recursive_v1"],
            Meta(
                description="The form in which the summarizer is shown the conversation.",
                extra_json_schema={"default": "harness_json_v1"},
            ),
        ]
        | UnsetType
    ) = UNSET
    output_format: (
        Annotated[
            Literal["structured_json", "plain_text"],
            Meta(description="The form of the answer.", extra_json_schema={"default": "structured_json"}),
        ]
        | UnsetType
    ) = UNSET
    length_policy: (
        Annotated[
            Literal["reject", "accept_bounded"],
            Meta(
                description="What becomes of an overlong answer: refused, or cut (plain text only).",
                extra_json_schema={"default": "reject"},
            ),
        ]
        | UnsetType
    ) = UNSET
    execution_policy: (
        Annotated[
            Literal["bounded_recent"],
            Meta(
                description="How candidates are chosen, and what is given up when none fits.",
                extra_json_schema={"default": "bounded_recent"},
            ),
        ]
        | UnsetType
    ) = UNSET
    recursive: Annotated[Recursive, Meta(description="Segments of automemory_recursive_v1.")] | UnsetType = UNSET


class ContextGovernance(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Whether the compacted request is sent."""

    mode: Annotated[
        Literal["enforce", "shadow"],
        Meta(
            description="enforce sends the compacted request; shadow reports it, stores nothing and sends the original."
        ),
    ]


class Scenario(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One product's configuration."""

    kind: Annotated[Literal["v2", "sumi"], Meta(description="The product's kind, where it has one.")] | UnsetType = (
        UNSET
    )
    context_governance: (
        Annotated[ContextGovernance, Meta(description="Whether the compacted request is sent. Not given: enforce.")]
        | UnsetType
    ) = UNSET
    compact: Annotated[Compact, Meta(description="Compaction. Not given: off.")] | UnsetType = UNSET

    @property
    def enabled(self) -> bool:
        """Whether histories are compacted."""
        return self.compact is not UNSET and self.compact.enabled

    @property
    def mode(self) -> Literal["enforce", "shadow"]:
        """Whether the compacted request is sent."""
        return "enforce" if self.context_governance is UNSET else self.context_governance.mode

    @property
    def trigger_ratio(self) -> float:
        """The share of the input budget above which a compaction is tried."""
        return TRIGGER_RATIO if self.compact is UNSET else given(self.compact.trigger_ratio, TRIGGER_RATIO)

    @property
    def explicit_groups(self) -> bool:
        """Whether requests say what is compacted as a whole."""
        return self.compact is not UNSET and self.compact.boundary_mode == "explicit_groups"

    @property
    def safety_margin(self) -> int | None:
        """Tokens kept free, None for the default share of the window."""
        return None if self.compact is UNSET else given(self.compact.safety_margin_tokens, None)

    @property
    def mutation_timeout_ms(self) -> int | None:
        """The limit of each checkpoint write, None for the default limit without a read-back."""
        return None if self.compact is UNSET else given(self.compact.checkpoint_mutation_timeout_ms, None)

    @property
    def compactor_id(self) -> str | None:
        """The model configuration that writes summaries, None where compaction is off and names none."""
        return None if self.compact is UNSET else given(self.compact.compactor_model_config_id, None)

    def policy(self) -> Policy:
        """Return the compaction policy, defaults filled in."""
        compact = Compact(enabled=False) if self.compact is UNSET else self.compact
        return _policy(compact)


def given(value: V | UnsetType, default: V) -> V:
    """Return a field's value, or the default where it was left out."""
    return default if isinstance(value, UnsetType) else value


def _policy(compact: Compact) -> Policy:
    bounds = given(compact.reliability, GENERIC_BOUNDS)
    protocol: InputProtocol = given(compact.input_protocol, "harness_json_v1")
    output: OutputFormat = given(compact.output_format, "structured_json")
    length: LengthPolicy = given(compact.length_policy, "reject")
    return Policy(
        planner=given(compact.execution_policy, "bounded_recent"),
        mask_tool_results=False,
        keep_last_groups=given(compact.keep_last_canonical_groups, KEEP_LAST),
        max_summary_tokens=given(compact.max_summary_tokens, None),
        input_protocol=protocol,
        output_format=output,
        length_policy=length,
        segment_content_tokens=None if compact.recursive is UNSET else compact.recursive.segment_content_tokens,
        min_generation_tokens=bounds.min_generation_tokens,
        max_candidate_attempts=bounds.max_candidate_attempts,
        max_model_calls=bounds.max_model_calls,
        max_compaction_ms=bounds.max_compaction_ms,
        summary_form="plain",
        fallback_on_failure=False,
    )


PROTOCOL_FIELDS: Final = ("inputProtocol", "outputFormat", "lengthPolicy", "executionPolicy", "recursive")
_GENERIC = other_than("profile", values=(CONFIGURABLE,))
_ON = among("enabled", values=(True,))
_CHOOSE = f'Add "profile": "{CONFIGURABLE}" with its "reliability", or remove it.'

RULES: Final[RuleTable] = {
    Scenario: (
        Rule(
            when=(among("kind", values=("v2",)), among("compact", "enabled", values=(True,))),
            then=present("contextGovernance"),
            reason="a v2 scenario with compaction must say whether the compacted request is sent",
            cure='Add "contextGovernance": {"mode": "enforce"}, or "shadow" to watch first.',
        ),
        Rule(
            when=(among("kind", values=("sumi",)),),
            then=absent("compact"),
            reason="a sumi scenario takes no compaction",
            cure="Remove it, or use another kind.",
        ),
    ),
    Compact: (
        Rule(
            when=(_ON,),
            then=present("compactorModelConfigId"),
            reason="compaction needs a model configuration that writes summaries",
            cure="Give the id of a model configuration.",
        ),
        Rule(
            when=(_GENERIC,),
            then=other_than("keepLastCanonicalGroups", values=(0,)),
            reason=f"only the profile {CONFIGURABLE} may keep no group",
            cure=f'Give at least 1, or add "profile": "{CONFIGURABLE}" with its "reliability".',
        ),
        Rule(
            when=(_ON, among("profile", values=(CONFIGURABLE,))),
            then=present("reliability"),
            reason=f"the profile {CONFIGURABLE} must give the bounds of a compaction",
            cure=f"Add them; the defaults of {GENERIC} are {msgspec.json.encode(GENERIC_BOUNDS).decode()}.",
        ),
        *(
            Rule(
                when=(_GENERIC,),
                then=absent(field),
                reason=f"only the profile {CONFIGURABLE} takes this field",
                cure=_CHOOSE,
            )
            for field in PROTOCOL_FIELDS
        ),
        Rule(
            when=(among("lengthPolicy", values=("accept_bounded",)),),
            then=among("outputFormat", values=("plain_text",)),
            reason='the length policy "accept_bounded" needs plain text: a cut JSON document is none',
            cure='Use "outputFormat": "plain_text", or "lengthPolicy": "reject".',
        ),
        Rule(
            when=(present("recursive"),),
            then=among("inputProtocol", values=("automemory_recursive_v1",)),
            reason="segments are cut by one input protocol alone",
            cure='Use "inputProtocol": "automemory_recursive_v1", or remove "recursive".',
        ),
    ),
}
"""The rules between fields of SPEC §11."""


def explain_unknown(owner: type, name: str) -> str | None:
    """Return what to do about an unknown field that is known elsewhere."""
    if owner is Compact and name == "contentPolicy":
        return "What a summary keeps is said by the summarizer's prompt preset: remove this, and see promptPreset of its model."
    for part, place in _PARTS.items():
        if part is not owner and name in (field.encode_name for field in msgspec.structs.fields(part)):
            return f"It belongs to {place}."
    return None


_PARTS: Final[dict[type[msgspec.Struct], str]] = {
    Scenario: "the top of the document",
    Compact: "compact",
    Reliability: "compact.reliability",
    Recursive: "compact.recursive",
    ContextGovernance: "contextGovernance",
}

_CHECKER: Final = Checker(rules=RULES, cure=explain_unknown)


def check_scenario(value: Any) -> tuple[Problem, ...]:
    """Return every problem of a scenario given as plain values."""
    return _CHECKER.check(value, Scenario)


def scenario_of(value: Any) -> Scenario:
    """Return the scenario of plain values. Raises ConfigError with every problem: path, value, reason and cure."""
    return _CHECKER.convert(value, Scenario)


def load_scenario(data: bytes, syntax: Syntax = "JSON", *, name: str = "the scenario") -> Scenario:
    """Return the scenario in a file's bytes; `name` is the file's, for messages. Raises ConfigError."""
    return scenario_of(read_document(data, syntax, name=name))


def scenario_document(scenario: Scenario) -> dict[str, Any]:
    """Return the scenario as it was written: the same keys and values, nothing added."""
    document: dict[str, Any] = msgspec.to_builtins(scenario)
    return document


def scenario_schema() -> dict[str, Any]:
    """Return the JSON Schema of scenarios."""
    return json_schema(Scenario, RULES, title="turnfold scenario")
