"""Documents for the tests of scenarios: the seed's own block, registries, and generated ones that are right or nearly so."""

import copy
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

SEED: dict[str, Any] = {
    "compact": {
        "enabled": True,
        "boundaryMode": "selected_turns",
        "compactorModelConfigId": "RP-Harness-Compact-AutoMemory-v0-Native",
        "triggerRatio": 0.8,
        "keepLastCanonicalGroups": 2,
        "checkpointMutationTimeoutMs": 5000,
        "safetyMarginTokens": 512,
        "maxSummaryTokens": 700,
        "reliability": {
            "version": "v1.1",
            "minGenerationTokens": 256,
            "maxCandidateAttempts": 24,
            "maxModelCalls": 2,
            "maxCompactionMs": 120000,
        },
        "profile": "configurable-v2",
        "inputProtocol": "dream_text_v0",
        "outputFormat": "plain_text",
        "lengthPolicy": "accept_bounded",
        "executionPolicy": "bounded_recent",
    }
}

MODELS: dict[str, Any] = {
    "models": {
        "RP-Harness-Compact-AutoMemory-v0-Native": {
            "provider": "scripted",
            "replies": ["好的。"],
            "contextWindow": 8192,
        },
        "offline": {"provider": "extractive"},
        "actor": {
            "provider": "openai_compatible",
            "model": "gpt-4o-mini",
            "contextWindow": 8192,
            "maxOutputTokens": 2048,
            "baseUrl": "http://localhost:11434/v1",
            "apiKeyEnv": "OPENAI_API_KEY",
            "promptPreset": "default",
        },
    }
}

ABSENT = object()


def seed_with(*path: str, value: Any) -> dict[str, Any]:
    """The seed's block with one field set, or removed by `ABSENT`."""
    document = copy.deepcopy(SEED)
    holder = document
    for name in path[:-1]:
        holder = holder.setdefault(name, {})
    if value is ABSENT:
        holder.pop(path[-1])
    else:
        holder[path[-1]] = value
    return document


_ODD = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        1,
        -1,
        5.0,
        0.5,
        101,
        1500,
        2**31,
        10**30,
        1e300,
        "",
        "x",
        "v1.1",
        "http://h",
        [],
        {},
        ["x"],
        {"a": 1},
    ]
)


def documents(struct: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Documents of a type: every field there or not, right or odd, now and then one that no type has."""
    kind = inspect.type_info(struct)
    assert isinstance(kind, inspect.StructType)
    return _struct(kind)


def _struct(kind: inspect.StructType) -> st.SearchStrategy[Any]:
    fields = {field.encode_name: _nearly(field.type) for field in kind.fields}
    required = {field.encode_name: fields[field.encode_name] for field in kind.fields if field.required}
    optional = {name: value for name, value in fields.items() if name not in required}
    strangers = st.sampled_from([{}, {}, {}, {}, {}, {}, {"stranger": 1}])
    whole = st.fixed_dictionaries(required, optional=optional)
    partial = st.fixed_dictionaries({}, optional=fields)
    return st.builds(lambda document, more: {**document, **more}, st.one_of(whole, whole, whole, partial), strangers)


def _nearly(kind: inspect.Type) -> st.SearchStrategy[Any]:
    right = _right(kind)
    return st.one_of(right, right, right, right, right, right, right, _ODD)


def _right(kind: inspect.Type) -> st.SearchStrategy[Any]:
    match kind:
        case inspect.Metadata():
            return _right(kind.type)
        case inspect.StructType():
            return _struct(kind)
        case inspect.LiteralType():
            return st.sampled_from(kind.values)
        case inspect.BoolType():
            return st.sampled_from([True, True, True, False])
        case inspect.IntType():
            return st.sampled_from([kind.ge, kind.le, 1500, 2, 1])
        case inspect.FloatType():
            return st.floats(0.01, 0.99)
        case inspect.StrType():
            return st.sampled_from(["a", "KEY_1", "http://localhost/v1", "模型"])
        case inspect.VarTupleType():
            return st.lists(_nearly(kind.item_type), max_size=2)
        case inspect.DictType():
            return st.dictionaries(st.sampled_from(["actor", "摘要"]), _nearly(kind.value_type), max_size=2)
        case _:
            return _ODD


def altered(document: dict[str, Any], struct: type[msgspec.Struct]) -> st.SearchStrategy[dict[str, Any]]:
    """The document with up to three of its type's fields removed, or given another value that is right or odd."""
    kind = inspect.type_info(struct)
    assert isinstance(kind, inspect.StructType)
    fields = {field.encode_name: st.one_of(st.just(ABSENT), _nearly(field.type)) for field in kind.fields}
    edit = st.sampled_from(sorted(fields)).flatmap(lambda name: st.tuples(st.just(name), fields[name]))
    return st.lists(edit, max_size=3).map(lambda edits: _edited(document, edits))


def _edited(document: dict[str, Any], edits: list[tuple[str, Any]]) -> dict[str, Any]:
    whole = {**document, **dict(edits)}
    return {name: value for name, value in whole.items() if value is not ABSENT}
