-- Statements over checkpoints and state: small rows with versions, compared and swapped under the write lock.

-- name: checkpoint_head
-- The newest version's number, invalidated ones included.
SELECT coalesce(max(version), 0) FROM checkpoints WHERE conversation = :conversation AND scenario = :scenario;

-- name: add_checkpoint
-- Runs after `checkpoint_head` was compared in the same transaction; the primary key holds even if it was not.
INSERT INTO checkpoints (conversation, scenario, version, format, body)
VALUES (:conversation, :scenario, :version, :format, :body);

-- name: checkpoint
-- One version.
SELECT version, format, body, invalidated FROM checkpoints
WHERE conversation = :conversation AND scenario = :scenario AND version = :version;

-- name: newest_checkpoints
-- Newest first, from below a version.
SELECT version, format, body, invalidated FROM checkpoints
WHERE conversation = :conversation AND scenario = :scenario AND version < :before
ORDER BY version DESC LIMIT :limit;

-- name: invalidate_checkpoint
-- The first reason stays: doing it again changes nothing.
UPDATE checkpoints SET invalidated = :reason
WHERE conversation = :conversation AND scenario = :scenario AND version = :version AND invalidated IS NULL;

-- name: scenarios
-- For `verify`: the lines of checkpoints of a conversation.
SELECT DISTINCT scenario FROM checkpoints WHERE conversation = :conversation ORDER BY scenario;

-- name: checkpoints_in_order
-- For `verify`: one line of checkpoints, oldest first.
SELECT version, format, body, invalidated FROM checkpoints
WHERE conversation = :conversation AND scenario = :scenario ORDER BY version;

-- name: state
-- One document with its version.
SELECT version, document FROM state WHERE conversation = :conversation AND name = :name;

-- name: put_state
-- Runs after `state` was compared in the same transaction.
INSERT INTO state (conversation, name, version, document) VALUES (:conversation, :name, :version, :document)
ON CONFLICT (conversation, name) DO UPDATE SET version = excluded.version, document = excluded.document;
