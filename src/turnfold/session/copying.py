"""Copies one conversation from a store to another, branch by branch, in pages: ids, positions and chains stay what they are."""

from __future__ import annotations

from turnfold.core.checkpoint import CheckpointKey
from turnfold.errors import NotFoundError
from turnfold.messages.log import Branch, ConversationKey
from turnfold.ports import Store
from turnfold.session.conversation import SCENARIO

PAGE = 500
"""Rows held at a time."""


async def copy_conversation(source: Store, target: Store, key: ConversationKey) -> None:
    """Copy messages, branches and the sessions' checkpoints; nothing when `source` has no such conversation.

    `target` must not have it. Raises StoreError.
    """
    try:
        branches = await source.branches(key)
    except NotFoundError:
        return
    for branch in branches:  # the oldest first, so a parent is there before what leaves it
        await _copy_branch(source, target, key, branch)
    await _copy_checkpoints(source, target, key)


async def _copy_branch(source: Store, target: Store, key: ConversationKey, branch: Branch) -> None:
    if branch.parent is not None:
        await target.fork(key, branch.name, position=branch.fork_position, branch=branch.parent)
    after = branch.fork_position
    while after < branch.position:
        rows = await source.read(key, branch=branch.name, after=after, limit=min(PAGE, branch.position - after))
        await target.append(key, [row.message for row in rows], branch=branch.name)
        after = rows[-1].position


async def _copy_checkpoints(source: Store, target: Store, key: ConversationKey) -> None:
    line = CheckpointKey(tenant=key.tenant, user=key.user, conversation_id=key.conversation_id, scenario=SCENARIO)
    for version in range(1, await source.head_version(line) + 1):
        record = await source.load(line, version)
        if record.checkpoint is None:
            return  # of a newer release: this one would number its own after it
        await target.save(line, record.checkpoint, expected_version=version - 1)
