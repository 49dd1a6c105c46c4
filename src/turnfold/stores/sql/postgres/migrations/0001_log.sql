-- The log with its branches, checkpoints and state, on PostgreSQL.
--
-- Every key begins with (tenant, user_id, conversation_id), so each table can be partitioned or distributed by any prefix of it,
-- and no statement reaches a row without its tenant and user. Names are bytea, their UTF-8: any text is a name, NUL characters
-- included, which the type text refuses; they sort by code point whatever the database's collation; and a comparison is a memcmp.
-- `WHERE tenant = 'acme'` works as it stands; `SET bytea_output = 'escape'` shows names as they read.

CREATE TABLE conversations (
    tenant bytea NOT NULL,
    user_id bytea NOT NULL,
    conversation_id bytea NOT NULL,
    updated_at bigint NOT NULL, -- ms; of the newest write outside the branches, which carry their own
    PRIMARY KEY (tenant, user_id, conversation_id)
);

-- A branch owns the rows (fork_position, position] of its path. `base` owns row `fork_position`; it is not `parent` when the fork
-- lies below the parent's own. The head (position, seq, chain) is kept here: an append compares and moves it. Room is left in
-- each page, so that moving a head writes no index.
CREATE TABLE branches (
    tenant bytea NOT NULL,
    user_id bytea NOT NULL,
    conversation_id bytea NOT NULL,
    branch integer NOT NULL, -- 1, 2, 3... in order of creation
    name bytea NOT NULL,
    parent bytea, -- the name of the branch that was asked to be forked
    base integer,
    fork_position bigint NOT NULL,
    fork_seq bigint NOT NULL,
    position bigint NOT NULL,
    seq bigint NOT NULL,
    chain bytea NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (tenant, user_id, conversation_id, branch),
    UNIQUE (tenant, user_id, conversation_id, name)
) WITH (fillfactor = 70);

-- One row for each message, kept by the branch that it was appended to. Hash-partitioned by the conversation: its rows lie in one
-- partition, and vacuum, index builds and backups work on a sixteenth of the table at a time.
CREATE TABLE messages (
    tenant bytea NOT NULL,
    user_id bytea NOT NULL,
    conversation_id bytea NOT NULL,
    branch integer NOT NULL,
    position bigint NOT NULL,
    seq bigint NOT NULL,      -- messages of the path up to and including this row
    chained boolean NOT NULL, -- true for kind `message`; other kinds are outside the chain
    chain bytea NOT NULL,     -- raw hash of the chain up to here
    message_id bytea NOT NULL,
    body bytea NOT NULL,      -- the message as JSON without its first field, the id
    counts text,              -- tokens by counter name, as JSON
    PRIMARY KEY (tenant, user_id, conversation_id, branch, position),
    UNIQUE (tenant, user_id, conversation_id, message_id)
) PARTITION BY HASH (tenant, user_id, conversation_id);

DO $$
BEGIN
    FOR part IN 0..15 LOOP
        EXECUTE format(
            'CREATE TABLE messages_%s PARTITION OF messages FOR VALUES WITH (MODULUS 16, REMAINDER %s)', part, part
        );
    END LOOP;
END
$$;

-- Rows outside the chain are few. Where the last one before message n lies tells where n lies, so messages need no index by number;
-- see `row_by_seq`.
CREATE INDEX messages_outside_chain ON messages (tenant, user_id, conversation_id, branch, seq, position) WHERE NOT chained;

CREATE TABLE checkpoints (
    tenant bytea NOT NULL,
    user_id bytea NOT NULL,
    conversation_id bytea NOT NULL,
    scenario bytea NOT NULL,
    version bigint NOT NULL,
    format bigint NOT NULL,
    body bytea NOT NULL,
    invalidated bytea, -- why it is unusable for everyone
    PRIMARY KEY (tenant, user_id, conversation_id, scenario, version)
);

CREATE TABLE state (
    tenant bytea NOT NULL,
    user_id bytea NOT NULL,
    conversation_id bytea NOT NULL,
    name bytea NOT NULL,
    version bigint NOT NULL,
    document bytea NOT NULL,
    PRIMARY KEY (tenant, user_id, conversation_id, name)
);
