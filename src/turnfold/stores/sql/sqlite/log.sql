-- Statements over the log. Each has a name and says why it is as it is; `turnfold.stores.statements` reads this file.

-- name: conversation
-- The small integer that stands for a key. Every operation starts here, so tenant and user are always part of it.
SELECT id FROM conversations WHERE tenant = :tenant AND user_id = :user AND conversation_id = :conversation_id;

-- name: add_conversation
-- SQLite numbers it. Runs under the write lock after `conversation` found none.
INSERT INTO conversations (tenant, user_id, conversation_id, updated_at)
VALUES (:tenant, :user, :conversation_id, :updated_at);

-- name: touch_conversation
-- Checkpoints and state are no part of a branch, so their time is kept with the conversation.
UPDATE conversations SET updated_at = max(updated_at, :updated_at) WHERE id = :conversation;

-- name: branch_by_number
-- One step of a walk down a path.
SELECT branch, name, base, fork_position, fork_seq, position, seq
FROM branches WHERE conversation = :conversation AND branch = :branch;

-- name: branches
-- All branches, oldest first: numbers are given in order of creation.
SELECT branch, name, base, fork_position, fork_seq, position, seq, parent, chain
FROM branches WHERE conversation = :conversation ORDER BY branch;

-- name: branch_by_name
-- As `branches`, for one name; its head is all that an append reads.
SELECT branch, name, base, fork_position, fork_seq, position, seq, parent, chain
FROM branches WHERE conversation = :conversation AND name = :name;

-- name: add_branch
-- The next number is taken under the write lock, so it is the order of creation.
INSERT INTO branches (conversation, branch, name, parent, base, fork_position, fork_seq, position, seq, chain, updated_at)
VALUES (
    :conversation,
    (SELECT coalesce(max(branch), 0) + 1 FROM branches WHERE conversation = :conversation),
    :name, :parent, :base, :position, :seq, :position, :seq, :chain, :updated_at
);

-- name: move_head
-- Part of every append's transaction: the head is never behind its rows.
UPDATE branches SET position = :position, seq = :seq, chain = :chain, updated_at = max(updated_at, :updated_at)
WHERE conversation = :conversation AND branch = :branch;

-- name: add_message
-- Run for all rows of an append at once, by place. The unique indexes refuse an id that the conversation has, on any
-- branch, and a position taken twice.
INSERT INTO messages (conversation, branch, position, seq, chained, chain, message_id, body, counts)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: place_of_id
-- Tells which id was there before when an append was refused.
SELECT branch, position FROM messages WHERE conversation = :conversation AND message_id = :message_id;

-- name: rows
-- A stretch of one branch's own rows, in order, by the unique index on positions.
SELECT position, seq, chained, chain, message_id, body, counts FROM messages
WHERE conversation = :conversation AND branch = :branch AND position > :after AND position <= :through
ORDER BY position;

-- name: row_by_seq
-- Message number n of a branch's own rows, without an index over messages: n grows with the position except at rows
-- outside the chain, so the last of those before it tells how far the two lie apart. One look-up for it, one for the row.
SELECT position, seq, chained, chain, message_id, body, counts FROM messages
WHERE conversation = :conversation AND branch = :branch AND position = :seq + coalesce(
    (
        SELECT outside.position - outside.seq FROM messages AS outside
        WHERE outside.conversation = :conversation AND outside.branch = :branch
        AND outside.chained = 0 AND outside.seq < :seq
        ORDER BY outside.seq DESC, outside.position DESC LIMIT 1
    ),
    :fork_position - :fork_seq
);

-- name: row_by_id
-- From any branch: ids are unique in the conversation.
SELECT b.name, m.position, m.seq, m.chained, m.chain, m.message_id, m.body, m.counts
FROM messages AS m JOIN branches AS b ON b.conversation = m.conversation AND b.branch = m.branch
WHERE m.conversation = :conversation AND m.message_id = :message_id;

-- name: counts_by_id
-- Counts are merged by the caller, which can name a row that is corrupt.
SELECT id, counts FROM messages WHERE conversation = :conversation AND message_id = :message_id;

-- name: set_counts
-- Derived data: nothing else of the row changes.
UPDATE messages SET counts = :counts WHERE id = :id;

-- name: conversations_of_tenant
-- A listing in key order by the unique index, from a key on.
SELECT user_id, conversation_id, id, updated_at FROM conversations
WHERE tenant = :tenant AND (user_id, conversation_id) >= (:from_user, :from_id)
ORDER BY user_id, conversation_id LIMIT :limit;

-- name: conversations_of_user
-- The same for one user: the index is entered at the user.
SELECT user_id, conversation_id, id, updated_at FROM conversations
WHERE tenant = :tenant AND user_id = :user AND conversation_id >= :from_id
ORDER BY conversation_id LIMIT :limit;

-- name: branch_sizes
-- What a listing shows of branches: each owns the rows after its fork, so their number needs no count.
SELECT name, position - fork_position, updated_at FROM branches WHERE conversation = :conversation ORDER BY branch;

-- name: count_messages
-- What a purge is about to remove.
SELECT count(*) FROM messages WHERE conversation = :conversation;

-- name: purge
-- Branches, messages, checkpoints and state follow by their foreign keys.
DELETE FROM conversations WHERE id = :conversation;

-- name: every_conversation
-- For `verify` over the whole file, a page at a time by number.
SELECT id, tenant, user_id, conversation_id FROM conversations WHERE id > :after ORDER BY id LIMIT :limit;
