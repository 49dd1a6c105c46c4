"""A request file: what a chat backend brings for one reply, as JSON, for debugging and for other languages (SPEC §10).

Messages are in the form of OpenAI chat completions, with an `id` each where the product has one. An id that is not persistent
is worse than none, so none is made up here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from turnfold.config import models, scenario
from turnfold.config.checking import Checker
from turnfold.config.documents import read_document
from turnfold.config.models import Models
from turnfold.config.problems import Path, Problem, problem_at, raise_all
from turnfold.config.scenario import Count, Id, Scenario, given
from turnfold.config.schema import json_schema
from turnfold.messages.model import Message, Tool
from turnfold.transcripts.naming import Namer
from turnfold.transcripts.openai_chat import decode_tools
from turnfold.transcripts.openai_chat_messages import BadMessage, Reader
from turnfold.transcripts.reading import BrokenJson, keep

T = TypeVar("T")

Key = Annotated[str, Meta(max_length=500)]


class ChatMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of OpenAI chat completions; every field of that format may stand here."""

    role: Annotated[
        Literal["system", "developer", "user", "assistant", "tool", "function"], Meta(description="Who speaks.")
    ]
    id: (
        Annotated[
            str,
            Meta(
                description="The message's persistent id. Without one for every covered message no checkpoint is stored."
            ),
        ]
        | UnsetType
    ) = UNSET


class ChatTool(msgspec.Struct, frozen=True, kw_only=True):
    """A function tool of OpenAI chat completions."""

    type: Annotated[Literal["function"], Meta(description="Functions alone are tools here.")]
    function: Annotated[dict[str, Any], Meta(description="name, description and parameters.")]


class RequestFile(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One request."""

    conversation_id: Annotated[Id, Meta(description="The conversation.")]
    user: Annotated[Key, Meta(description="The user it belongs to.")] | UnsetType = UNSET
    tenant: Annotated[Key, Meta(description="The tenant.")] | UnsetType = UNSET
    scenario: (
        Annotated[
            Id, Meta(description="The line of checkpoints. Not given: the scenario file's name without its ending.")
        ]
        | UnsetType
    ) = UNSET
    scenario_config: (
        Annotated[Scenario, Meta(description="The scenario, where --scenario names no file.")] | UnsetType
    ) = UNSET
    model_configs: (
        Annotated[Models, Meta(description="The model configurations, where --models names no file.")] | UnsetType
    ) = UNSET
    actor_model_config_id: (
        Annotated[Id, Meta(description="The model that writes the reply; its window is the request's.")] | UnsetType
    ) = UNSET
    request_type: (
        Annotated[
            Id,
            Meta(
                description="chat, continue and auto_reply may change checkpoints, any other type only reads them.",
                extra_json_schema={"default": "chat"},
            ),
        ]
        | UnsetType
    ) = UNSET
    role_id: (
        Annotated[str, Meta(description="The character; another one makes old summaries unusable.")] | UnsetType
    ) = UNSET
    persona: Annotated[str, Meta(description="The character's text, compared like roleId.")] | UnsetType = UNSET
    fixed_prompt: (
        Annotated[tuple[ChatMessage, ...], Meta(description="The messages before the history.")] | UnsetType
    ) = UNSET
    tools: Annotated[tuple[ChatTool, ...], Meta(description="The tools offered.")] | UnsetType = UNSET
    history: (
        Annotated[tuple[ChatMessage, ...], Meta(description="The history, or its recent part, oldest first.")]
        | UnsetType
    ) = UNSET
    injected: (
        Annotated[tuple[ChatMessage, ...], Meta(description="What stands before the new line; it may change freely.")]
        | UnsetType
    ) = UNSET
    incoming: (
        Annotated[tuple[ChatMessage, ...], Meta(description="The user's new line; it is not history.")] | UnsetType
    ) = UNSET
    groups: (
        Annotated[
            tuple[tuple[str, ...], ...],
            Meta(description="Ids of the history in groups, from its first message on; for explicit_groups alone."),
        ]
        | UnsetType
    ) = UNSET
    max_output: (
        Annotated[Count, Meta(description="This turn's maximum output in tokens. Not given: the actor's.")] | UnsetType
    ) = UNSET
    checkpoint_mutation_allowed: (
        Annotated[bool, Meta(description="Whether checkpoints may change. Not given: as requestType says.")] | UnsetType
    ) = UNSET


MESSAGE_FIELDS: Final = ("fixedPrompt", "history", "injected", "incoming")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request read: the file as written, and its messages and tools as values. A message without an id has an empty one."""

    file: RequestFile
    fixed_prompt: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    history: tuple[Message, ...] = ()
    injected: tuple[Message, ...] = ()
    incoming: tuple[Message, ...] = ()


RULES: Final = {**scenario.RULES, **models.RULES}


def _explain(owner: type, name: str) -> str | None:
    return scenario.explain_unknown(owner, name) or models.explain_unknown(owner, name)


_CHECKER: Final = Checker(rules=RULES, cure=_explain)


def check_request(value: Any) -> tuple[Problem, ...]:
    """Return every problem of a request given as plain values; what a message holds is looked at when it is read."""
    return _CHECKER.check(value, RequestFile)


def load_request(data: bytes, *, name: str = "the request") -> Request:
    """Return the request in a JSON file's bytes; `name` is the file's, for messages. Raises ConfigError."""
    return request_of(read_document(data, name=name))


def request_of(value: Any) -> Request:
    """Return the request of plain values. Half characters in messages are repaired, since a history may hold them for good.

    Raises ConfigError with every problem: path, value, reason and cure.
    """
    file = _CHECKER.convert(value, RequestFile)
    problems: list[Problem] = []
    read = {field: _messages(value.get(field, []), (field,), problems) for field in MESSAGE_FIELDS}
    raise_all(problems)
    return Request(
        file=file,
        fixed_prompt=read["fixedPrompt"],
        tools=decode_tools(value.get("tools")),
        history=read["history"],
        injected=read["injected"],
        incoming=read["incoming"],
    )


class _Unnamed(Namer):
    """Names nothing: a message without an id of its own keeps none."""

    def name(self, message: Message) -> str:
        """Return no id."""
        return ""


def _messages(values: list[Any], path: Path, problems: list[Problem]) -> tuple[Message, ...]:
    reader, unnamed, found = Reader(), _Unnamed("request"), []
    for index, value in enumerate(values):
        try:
            found.append(reader.message(keep(value), unnamed))
        except (BadMessage, BrokenJson) as error:
            problems.append(problem_at((*path, index), value, str(error), "Repair the message."))
    return tuple(found)


def check_groups(request: RequestFile, scenario: Scenario) -> Iterator[Problem]:
    """Yield what is wrong with a request's groups beside its scenario: they go with `explicit_groups` and nothing else."""
    groups = given(request.groups, None)
    if scenario.explicit_groups and groups is None:
        yield problem_at(("groups",), None, "the scenario's boundaryMode is explicit_groups", "Give the groups.")
    if not scenario.explicit_groups and groups is not None:
        reason = "the scenario's boundaryMode is not explicit_groups, so they would be passed over"
        yield problem_at(("groups",), groups, reason, 'Remove them, or set "boundaryMode": "explicit_groups".')


def request_schema() -> dict[str, Any]:
    """Return the JSON Schema of request files."""
    return json_schema(RequestFile, RULES, title="turnfold request")
