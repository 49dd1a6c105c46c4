"""The stored form of messages and checkpoints, and what may not be stored. Every store encodes and decodes here.

A message's body is its JSON without the id, which has its own column. Whatever is accepted comes back equal: a value that
JSON would change is refused before anything is written, and a row that cannot be decoded is an error that names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from turnfold.core.checkpoint import FORMAT_VERSION, Checkpoint, CheckpointKey, CheckpointRecord
from turnfold.errors import CorruptRowError, DuplicateMessageError, InputError, VersionConflict
from turnfold.messages.canonical import HASH_BYTES, RECIPE, digest, extend_chain
from turnfold.messages.log import Branch, ConversationKey, LogEntry
from turnfold.messages.model import Message

_encoder = msgspec.json.Encoder()
_messages = msgspec.json.Decoder(Message)
_checkpoints = msgspec.json.Decoder(Checkpoint)
_counts = msgspec.json.Decoder(dict[str, int])
_NOT_JSON = (TypeError, ValueError, RecursionError, msgspec.MsgspecError)


class Prepared(NamedTuple):
    """A message ready to be stored: its body, its digest (None for kinds outside the chain) and its counts."""

    message: Message
    body: bytes
    digest: str | None
    counts: dict[str, int]


class Stored(NamedTuple):
    """A message's row. `seq` counts the messages up to and including this row; `chained` is false for other kinds."""

    branch: str
    position: int
    seq: int
    chained: bool
    chain: bytes
    message_id: str
    body: bytes
    counts: str | None


def require_text(what: str, *values: str) -> None:
    """Raise InputError if a name cannot be written as UTF-8 (it holds half of a surrogate pair)."""
    for value in values:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InputError(f"the {what} {value!r} is not valid Unicode text. Use another.") from None


def require_key(key: ConversationKey | CheckpointKey) -> None:
    """Raise InputError if a part of the key cannot be written as UTF-8."""
    require_text("conversation key", key.tenant, key.user, key.conversation_id)
    if isinstance(key, CheckpointKey):
        require_text("scenario", key.scenario)


def require_bounds(limit: int | None) -> None:
    """Raise InputError for a limit below 0."""
    if limit is not None and limit < 0:
        raise InputError(f"the limit {limit} is below 0. Give 0 or more.")


def require_position(branch: Branch, expected_position: int | None) -> None:
    """Raise VersionConflict if the branch ends elsewhere than expected (None expects nothing)."""
    if expected_position is not None and expected_position != branch.position:
        raise VersionConflict(f"branch {branch.name!r}", expected_position, branch.position)


def listing_start(tenant: str, user: str | None, after: ConversationKey | None) -> tuple[str, str] | None:
    """Return the least (user, conversation_id) beyond `after`, None when the whole listing lies before it."""
    if after is None or (after.tenant, after.user) < (tenant, user or ""):
        return user or "", ""
    if after.tenant > tenant or (user is not None and after.user > user):
        return None
    return after.user, after.conversation_id + "\0"  # no string lies between a string and that


def prepare(messages: Sequence[Message], counts: Mapping[str, Sequence[int]] | None = None) -> tuple[Prepared, ...]:
    """Encode and digest messages. Raises InputError (message not storable, wrong number of counts), DuplicateMessageError."""
    _require_distinct(messages)
    for counter, tokens in counts.items() if counts else ():
        require_text("counter name", counter)
        if len(tokens) != len(messages):
            raise InputError(f"counts of {counter!r}: {len(tokens)} for {len(messages)} messages. Give one for each.")
    by_message = [dict(zip(counts, row, strict=True)) for row in zip(*counts.values(), strict=True)] if counts else None
    return tuple(
        Prepared(
            message,
            encode_message(message),
            digest(message) if message.kind == "message" else None,
            by_message[index] if by_message else {},
        )
        for index, message in enumerate(messages)
    )


def _require_distinct(messages: Sequence[Message]) -> None:
    seen: set[str] = set()
    for message in messages:
        if message.id in seen:
            raise DuplicateMessageError(message.id)
        seen.add(message.id)


def encode_message(message: Message) -> bytes:
    """Return the body. Raises InputError naming the message when its JSON would not give the same message back."""
    try:
        whole = _encoder.encode(message)
        same = _messages.decode(whole) == message
    except _NOT_JSON as error:
        raise _unstorable(f"message {message.id!r}", error) from error
    if not same:
        raise _changed(f"message {message.id!r}")
    return b"{" + whole[len(_opening(message.id)) :]


def decode_message(message_id: str, body: bytes) -> Message:
    """Return the message. Raises msgspec.DecodeError."""
    return _messages.decode(_opening(message_id) + body[1:])


def _opening(message_id: str) -> bytes:
    """A message's JSON begins with its id, which its row has in a column of its own."""
    return b'{"id":' + _encoder.encode(message_id) + b","


def _unstorable(where: str, error: Exception) -> InputError:
    reason = f"holds a value that is not JSON or not of its field's type: {error}"
    if isinstance(error, UnicodeEncodeError):
        reason = f"holds text that is not valid Unicode (half of a surrogate pair at character {error.start})"
    return InputError(f"{where} {reason}. Nothing was written; replace it.")


def _changed(where: str) -> InputError:
    return InputError(f"{where} holds a value that JSON would change (a tuple, NaN?). Nothing was written; replace it.")


def place(rows: Sequence[Prepared], head: Branch) -> tuple[tuple[LogEntry, ...], Branch]:
    """Put rows after `head`: return their entries, with positions and the chain, and the new head."""
    entries: list[LogEntry] = []
    seq, chain = head.seq, head.chain
    for position, row in enumerate(rows, head.position + 1):
        if row.digest is not None:
            seq, chain = seq + 1, extend_chain(chain, row.digest)
        entries.append(
            LogEntry(
                message=row.message,
                branch=head.name,
                position=position,
                seq=seq if row.digest is not None else None,
                chain=chain,
                counts=row.counts,
            )
        )
    new_head = msgspec.structs.replace(head, position=head.position + len(rows), seq=seq, chain=chain)
    return tuple(entries), new_head


def to_stored(entries: Sequence[LogEntry], rows: Sequence[Prepared], seq: int) -> list[Stored]:
    """Return the rows to write for placed entries; `seq` is the branch's before them."""
    stored: list[Stored] = []
    for entry, row in zip(entries, rows, strict=True):
        seq = seq if entry.seq is None else entry.seq
        stored.append(
            Stored(
                branch=entry.branch,
                position=entry.position,
                seq=seq,
                chained=entry.seq is not None,
                chain=chain_bytes(entry.chain),
                message_id=entry.message.id,
                body=row.body,
                counts=encode_counts(row.counts),
            )
        )
    return stored


def to_entry(key: ConversationKey, stored: Stored) -> LogEntry:
    """Decode a row. Raises CorruptRowError naming it."""
    try:
        message = decode_message(stored.message_id, stored.body)
        counts = decode_counts(stored.counts)
        chain = chain_text(stored.chain)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise CorruptRowError(row_name(key, stored), str(error)) from error
    if (message.kind == "message") != bool(stored.chained):
        raise CorruptRowError(row_name(key, stored), f"its kind is {message.kind!r}, its place says otherwise")
    return LogEntry(
        message=message,
        branch=stored.branch,
        position=stored.position,
        seq=stored.seq if stored.chained else None,
        chain=chain,
        counts=counts,
    )


def row_name(key: ConversationKey, stored: Stored) -> str:
    """Return how errors name a message's row."""
    return f"{key}: branch {stored.branch!r} position {stored.position} (message {stored.message_id!r})"


def chain_bytes(chain: str) -> bytes:
    """Return a chain's hash as it is stored: without the recipe's name, which the schema's version stands for."""
    return bytes.fromhex(chain[len(RECIPE) + 1 :])


def chain_text(raw: bytes) -> str:
    """Return a stored chain with its recipe's name. Raises ValueError for the wrong length."""
    if len(raw) != HASH_BYTES:
        raise ValueError(f"its chain has {len(raw)} bytes, not {HASH_BYTES}")
    return f"{RECIPE}:{raw.hex()}"


def encode_counts(counts: Mapping[str, int]) -> str | None:
    """Return counts as compact JSON text, None for none."""
    return _encoder.encode(counts).decode() if counts else None


def decode_counts(stored: str | None) -> dict[str, int]:
    """Return stored counts. Raises msgspec.DecodeError."""
    return {} if stored is None else _counts.decode(stored)


def encode_checkpoint(key: CheckpointKey, checkpoint: Checkpoint, expected_version: int) -> bytes:
    """Return a checkpoint's body. Raises InputError for a wrong version number or a value that JSON would change."""
    where = f"checkpoint {key} version {checkpoint.version}"
    if checkpoint.version != expected_version + 1:
        raise InputError(f"{where} is not the version after {expected_version}. Number it {expected_version + 1}.")
    try:
        body = _encoder.encode(checkpoint)
        same = _checkpoints.decode(body) == checkpoint
    except _NOT_JSON as error:
        raise _unstorable(where, error) from error
    if not same:
        raise _changed(where)
    return body


def require_outside_chain(rows: Sequence[Message]) -> None:
    """Raise InputError if a row saved with a checkpoint is of kind `message`: those arrive by `append` alone."""
    for row in rows:
        if row.kind == "message":
            raise InputError(f"message {row.id!r} is of kind 'message'. Append it; save takes summaries and the like.")


def to_record(
    key: CheckpointKey, version: int, stored_format: int, body: bytes, invalidated: str | None
) -> CheckpointRecord:
    """Decode a checkpoint's row; an unknown format gives a record without a checkpoint. Raises CorruptRowError."""
    where = f"checkpoint {key} version {version}"
    checkpoint = None
    if 1 <= stored_format <= FORMAT_VERSION:
        try:
            checkpoint = _checkpoints.decode(body)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise CorruptRowError(where, str(error)) from error
        if (checkpoint.version, checkpoint.format) != (version, stored_format):
            raise CorruptRowError(where, f"its body says version {checkpoint.version} format {checkpoint.format}")
    return CheckpointRecord(version=version, format=stored_format, checkpoint=checkpoint, invalidated=invalidated)
