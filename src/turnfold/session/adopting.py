"""A foreign summary becomes a checkpoint when the messages that it covers are in the log."""

from __future__ import annotations

from turnfold.core.checkpoint import TAIL_LENGTH, Audit, Checkpoint, CheckpointKey, Coverage
from turnfold.core.envelope import raw_summary
from turnfold.core.policy import Policy
from turnfold.errors import VersionConflict
from turnfold.messages.canonical import digest
from turnfold.messages.log import ConversationKey, LogEntry
from turnfold.ports import Clock, Store
from turnfold.session.conversation import SCENARIO
from turnfold.session.session import session_fingerprint

ATTEMPTS = 5
"""How often a save is tried anew after another process saved a checkpoint."""


async def adopt_summary(
    store: Store,
    key: ConversationKey,
    summary_id: str,
    last_id: str,
    policy: Policy,
    clock: Clock,
    format_name: str,
) -> bool:
    """Save the summary in message `summary_id` as a checkpoint over everything up to message `last_id`.

    Returns False, and writes nothing, when one of the two is not in the log or the summary is a checkpoint already.
    """
    found = await store.find(key, (summary_id, last_id))
    if len(found) != 2:
        return False
    summary, last = found
    if last.seq is None:
        return False
    line = CheckpointKey(tenant=key.tenant, user=key.user, conversation_id=key.conversation_id, scenario=SCENARIO)
    coverage = await _coverage(store, key, last, last.seq)
    for _ in range(ATTEMPTS):
        if await _is_adopted(store, line, summary_id):
            return False
        version = await store.head_version(line)
        checkpoint = Checkpoint(
            version=version + 1,
            created_at=summary.message.created_at or clock.now_ms(),
            fingerprint=session_fingerprint(policy),
            summary=raw_summary(summary.message) or summary.message.text,
            summary_message_id=summary_id,
            coverage=coverage,
            folded=(summary_id,),
            audit=Audit(trigger="manual", mode="imported", summarizer=format_name),
        )
        try:
            await store.save(line, checkpoint, expected_version=version)
        except VersionConflict:
            continue
        return True
    return False


async def _is_adopted(store: Store, line: CheckpointKey, summary_id: str) -> bool:
    before: int | None = None
    while records := await store.newest(line, before=before, limit=100):
        if any(record.checkpoint and record.checkpoint.summary_message_id == summary_id for record in records):
            return True
        before = records[-1].version
    return False


async def _coverage(store: Store, key: ConversationKey, last: LogEntry, seq: int) -> Coverage:
    """Return the coverage of a path up to a row, by its stored chain: a few look-ups, however long the path."""
    first = await store.at_seq(key, 1, branch=last.branch)
    start = await store.at_seq(key, max(1, seq - TAIL_LENGTH + 1), branch=last.branch)
    assert first is not None
    assert start is not None
    after = start.position - 1
    rows = await store.read(key, branch=last.branch, after=after, limit=last.position - after)
    tail = tuple((row.message.id, digest(row.message)) for row in rows if row.seq is not None)
    return Coverage(first_id=first.message.id, last_id=last.message.id, count=seq, chain=last.chain, tail=tail)
