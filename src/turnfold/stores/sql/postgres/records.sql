-- Statements over checkpoints and state: small rows with versions, compared and swapped.

-- name: checkpoint_head
-- The newest version's number, invalidated ones included.
SELECT coalesce(max(version), 0) FROM checkpoints
WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s AND scenario = %(scenario)s;

-- name: add_checkpoint
-- Runs after `checkpoint_head` was compared under the conversation's lock; the primary key holds even if it was not.
INSERT INTO checkpoints (tenant, user_id, conversation_id, scenario, version, format, body)
VALUES (%(tenant)s, %(user)s, %(conversation_id)s, %(scenario)s, %(version)s, %(format)s, %(body)s);

-- name: checkpoint
-- One version.
SELECT version, format, body, invalidated FROM checkpoints
WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s AND scenario = %(scenario)s
AND version = %(version)s;

-- name: newest_checkpoints
-- Newest first, from below a version.
SELECT version, format, body, invalidated FROM checkpoints
WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s AND scenario = %(scenario)s
AND version < %(before)s ORDER BY version DESC LIMIT %(limit)s;

-- name: invalidate_checkpoint
-- The first reason stays: doing it again changes nothing. A row comes back when the version is there.
UPDATE checkpoints SET invalidated = coalesce(invalidated, %(reason)s)
WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s AND scenario = %(scenario)s
AND version = %(version)s RETURNING version;

-- name: checkpoints_in_order
-- For `verify`: all lines of checkpoints, oldest first.
SELECT scenario, version, format, body, invalidated FROM checkpoints
WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s ORDER BY scenario, version;

-- name: state
-- One document with its version.
SELECT version, document FROM state
WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s AND name = %(name)s;

-- name: put_state
-- Compares and swaps in one statement; the new version comes back, or no row when the stored one is another. Version 0 is none.
WITH first AS (
    INSERT INTO state (tenant, user_id, conversation_id, name, version, document)
    SELECT %(tenant)s, %(user)s, %(conversation_id)s, %(name)s, 1, %(document)s WHERE %(expected)s = 0
    ON CONFLICT (tenant, user_id, conversation_id, name) DO NOTHING
    RETURNING version
), next AS (
    UPDATE state SET version = version + 1, document = %(document)s
    WHERE tenant = %(tenant)s AND user_id = %(user)s AND conversation_id = %(conversation_id)s AND name = %(name)s
    AND version = %(expected)s
    RETURNING version
), put AS (
    SELECT version FROM first UNION ALL SELECT version FROM next
), touched AS (
    INSERT INTO conversations (tenant, user_id, conversation_id, updated_at)
    SELECT %(tenant)s, %(user)s, %(conversation_id)s, %(updated_at)s::bigint FROM put
    ON CONFLICT (tenant, user_id, conversation_id)
    DO UPDATE SET updated_at = greatest(conversations.updated_at, excluded.updated_at)
)
SELECT version FROM put;
