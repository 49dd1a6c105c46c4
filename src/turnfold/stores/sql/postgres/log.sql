-- Statements over the log. Each has a name and says why it is as it is; `turnfold.stores.statements` reads this file.

-- name: touch_conversation
-- Makes the conversation as needed, and takes its lock: forks, checkpoints and purges of one conversation come one after another.
INSERT INTO conversations (tenant, user_id, conversation_id, updated_at)
VALUES (%(tenant)s, %(user)s, %(conversation_id)s, %(updated_at)s)
ON CONFLICT (tenant, user_id, conversation_id)
DO UPDATE SET updated_at = greatest(conversations.updated_at, excluded.updated_at);

-- name: lock_conversation
-- Takes the same lock where nothing is to be made.
SELECT 1 FROM conversations
WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s FOR UPDATE;

-- name: conversation
-- Whether the conversation is there.
SELECT 1 FROM conversations WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s;

-- name: path
-- A branch and those below it, leaf first. A base that does not lie below its branch ends the walk here, and is an error in the caller.
WITH RECURSIVE walk AS (
    SELECT branch, name, base, fork_position, fork_seq, position, seq, parent, chain, 1 AS step FROM branches
    WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s AND name = %(name)s
    UNION ALL
    SELECT b.branch, b.name, b.base, b.fork_position, b.fork_seq, b.position, b.seq, b.parent, b.chain, w.step + 1
    FROM walk AS w JOIN branches AS b ON b.branch = w.base
    WHERE b.tenant = %(tenant)s AND b.user_id = %(user)s AND b.conversation_id = %(conversation_id)s
    AND b.fork_position < w.fork_position
)
SELECT branch, name, base, fork_position, fork_seq, position, seq, parent, chain FROM walk ORDER BY step;

-- name: path_rows
-- A path's rows after a position together with the branches that own them, in one look of one snapshot. With the newest checkpoint's
-- version, because a turn asks for both; one row at least when there is a branch.
WITH RECURSIVE walk AS (
    SELECT branch, name, base, fork_position, fork_seq, position, seq, parent, chain, position AS through, 1 AS step
    FROM branches
    WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s AND name = %(name)s
    UNION ALL
    SELECT
        b.branch, b.name, b.base, b.fork_position, b.fork_seq, b.position, b.seq, b.parent, b.chain, w.fork_position,
        w.step + 1
    FROM walk AS w JOIN branches AS b ON b.branch = w.base
    WHERE b.tenant = %(tenant)s AND b.user_id = %(user)s AND b.conversation_id = %(conversation_id)s
    AND b.fork_position < w.fork_position AND w.fork_position > %(after)s
)
SELECT
    (
        SELECT coalesce(max(version), 0) FROM checkpoints
        WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s
        AND scenario = %(scenario)s
    ),
    w.branch, w.name, w.base, w.fork_position, w.fork_seq, w.position, w.seq, w.parent, w.chain,
    m.position, m.seq, m.chained, m.chain, m.message_id, m.body, m.counts
FROM walk AS w LEFT JOIN messages AS m
ON m.tenant = %(tenant)s AND m.user_id = %(user)s AND m.conversation_id = %(conversation_id)s AND m.branch = w.branch
AND m.position > greatest(w.fork_position, %(after)s) AND m.position <= least(w.through, %(through)s)
ORDER BY w.step DESC, m.position;

-- name: branch_by_name
-- A head, all that an append reads; usually not even that, see `append`.
SELECT branch, name, base, fork_position, fork_seq, position, seq, parent, chain FROM branches
WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s AND name = %(name)s;

-- name: lock_branch
-- The same, and nobody appends before this transaction ends.
SELECT branch, name, base, fork_position, fork_seq, position, seq, parent, chain FROM branches
WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s AND name = %(name)s FOR UPDATE;

-- name: branches
-- All branches, oldest first: numbers are given in order of creation.
SELECT branch, name, base, fork_position, fork_seq, position, seq, parent, chain FROM branches
WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s ORDER BY branch;

-- name: start
-- Makes a conversation and its main branch as needed. The first to come makes them; the others find them.
WITH made AS (
    INSERT INTO conversations (tenant, user_id, conversation_id, updated_at)
    VALUES (%(tenant)s, %(user)s, %(conversation_id)s, %(updated_at)s)
    ON CONFLICT (tenant, user_id, conversation_id) DO NOTHING
)
INSERT INTO branches (
    tenant, user_id, conversation_id, branch, name, fork_position, fork_seq, position, seq, chain, updated_at
)
VALUES (%(tenant)s, %(user)s, %(conversation_id)s, 1, %(name)s, 0, 0, 0, 0, %(chain)s, %(updated_at)s)
ON CONFLICT DO NOTHING;

-- name: add_branch
-- The next number is taken under the conversation's lock, so it is the order of creation.
INSERT INTO branches (
    tenant, user_id, conversation_id, branch, name, parent, base, fork_position, fork_seq, position, seq, chain, updated_at
)
SELECT
    %(tenant)s, %(user)s, %(conversation_id)s, coalesce(max(branch), 0) + 1, %(name)s, %(parent)s, %(base)s::integer,
    %(position)s::bigint, %(seq)s::bigint, %(position)s::bigint, %(seq)s::bigint, %(chain)s, %(updated_at)s::bigint
FROM branches WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s;

-- name: append
-- Compares a branch's head, moves it and writes the rows behind it, all in one statement: one round trip, one transaction, and no lock
-- is held while a client thinks. The chain is compared too, since a purged conversation may have been begun anew. No row comes back
-- when the head is another. Unique indexes refuse an id that the conversation has on any branch.
WITH head AS (
    UPDATE branches SET
        position = %(position)s, seq = %(seq)s, chain = %(chain)s, updated_at = greatest(updated_at, %(updated_at)s)
    WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s AND branch = %(branch)s
    AND position = %(old_position)s AND chain = %(old_chain)s
    RETURNING branch
), added AS (
    INSERT INTO messages (
        tenant, user_id, conversation_id, branch, position, seq, chained, chain, message_id, body, counts
    )
    SELECT %(tenant)s, %(user)s, %(conversation_id)s, head.branch, new.*
    FROM head, unnest(
        %(positions)s::bigint[], %(seqs)s::bigint[], %(chained)s::boolean[], %(chains)s::bytea[], %(ids)s::bytea[],
        %(bodies)s::bytea[], %(counts)s::text[]
    ) AS new
)
SELECT branch FROM head;

-- name: places_of_ids
-- Tells which id was there before when an append was refused.
SELECT message_id FROM messages
WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s
AND message_id = ANY(%(ids)s::bytea[]);

-- name: row_by_seq
-- Message number n of a branch's own rows, without an index over messages: n grows with the position except at rows outside the chain,
-- so the last of those before it tells how far the two lie apart. One look-up for it, one for the row.
SELECT position, seq, chained, chain, message_id, body, counts FROM messages
WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s AND branch = %(branch)s
AND position = %(number)s + coalesce(
    (
        SELECT outside.position - outside.seq FROM messages AS outside
        WHERE outside.tenant = %(tenant)s AND outside.user_id = %(user)s
        AND outside.conversation_id = %(conversation_id)s AND outside.branch = %(branch)s
        AND NOT outside.chained AND outside.seq < %(number)s
        ORDER BY outside.seq DESC, outside.position DESC LIMIT 1
    ),
    %(offset)s
);

-- name: row_at
-- One of a branch's own rows, by its position.
SELECT position, seq, chained, chain, message_id, body, counts FROM messages
WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s AND branch = %(branch)s
AND position = %(position)s;

-- name: own_rows
-- For `verify`: a stretch of one branch's own rows, in order.
SELECT position, seq, chained, chain, message_id, body, counts FROM messages
WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s AND branch = %(branch)s
AND position > %(after)s ORDER BY position LIMIT %(limit)s;

-- name: rows_by_ids
-- From any branch: ids are unique in the conversation.
SELECT b.name, m.position, m.seq, m.chained, m.chain, m.message_id, m.body, m.counts
FROM messages AS m JOIN branches AS b
ON b.tenant = m.tenant AND b.user_id = m.user_id AND b.conversation_id = m.conversation_id AND b.branch = m.branch
WHERE m.tenant = %(tenant)s AND m.user_id = %(user)s AND m.conversation_id = %(conversation_id)s
AND m.message_id = ANY(%(ids)s::bytea[]);

-- name: lock_counts
-- Counts are merged by the caller, which can name a row that is corrupt; nobody else merges meanwhile. In id order, so that two such
-- callers never wait for each other.
SELECT message_id, counts FROM messages
WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s
AND message_id = ANY(%(ids)s::bytea[]) ORDER BY message_id FOR UPDATE;

-- name: set_counts
-- Derived data: nothing else of the rows changes.
UPDATE messages SET counts = new.counts
FROM unnest(%(ids)s::bytea[], %(counts)s::text[]) AS new (message_id, counts)
WHERE messages.tenant = %(tenant)s AND messages.user_id = %(user)s
AND messages.conversation_id = %(conversation_id)s AND messages.message_id = new.message_id;

-- name: conversations
-- A listing in key order by the primary key, from a key on. A user of NULL is every user of the tenant.
SELECT
    c.user_id, c.conversation_id, c.updated_at,
    array(
        SELECT name FROM branches AS b
        WHERE b.tenant = c.tenant AND b.user_id = c.user_id AND b.conversation_id = c.conversation_id ORDER BY branch
    ),
    (
        SELECT coalesce(sum(position - fork_position), 0)::bigint FROM branches AS b
        WHERE b.tenant = c.tenant AND b.user_id = c.user_id AND b.conversation_id = c.conversation_id
    ),
    (
        SELECT coalesce(max(updated_at), 0) FROM branches AS b
        WHERE b.tenant = c.tenant AND b.user_id = c.user_id AND b.conversation_id = c.conversation_id
    )
FROM conversations AS c
WHERE c.tenant = %(tenant)s AND (%(user)s::bytea IS NULL OR c.user_id = %(user)s::bytea)
AND (c.user_id, c.conversation_id) >= (%(from_user)s, %(from_id)s)
ORDER BY c.user_id, c.conversation_id LIMIT %(limit)s;

-- name: every_conversation
-- For `verify` over the whole store, a page at a time in key order.
SELECT tenant, user_id, conversation_id FROM conversations
WHERE (tenant, user_id, conversation_id) > (%(tenant)s, %(user)s, %(conversation_id)s)
ORDER BY tenant, user_id, conversation_id LIMIT %(limit)s;

-- name: purge_branches
-- First, so that an append under way finds no head to move.
DELETE FROM branches WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s;

-- name: purge_messages
-- Their number is what a purge returns.
DELETE FROM messages WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s;

-- name: purge_checkpoints
-- They hold summaries, so they go too.
DELETE FROM checkpoints WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s;

-- name: purge_state
-- And the small documents.
DELETE FROM state WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s;

-- name: purge_conversation
-- Last: its lock was taken first.
DELETE FROM conversations WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s;
