-- The log with its branches, checkpoints and state.
--
-- The key of everything is (tenant, user_id, conversation_id). It is written once, in `conversations`; its small integer
-- stands for it everywhere else and is looked up in the transaction that uses it, so rows and indexes stay small and no
-- statement reaches a conversation without its tenant and user.

CREATE TABLE conversations (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    user_id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    updated_at INTEGER NOT NULL, -- ms; of the newest write outside the branches, which carry their own
    UNIQUE (tenant, user_id, conversation_id)
) STRICT;

-- A branch owns the rows (fork_position, position] of its path. `base` owns row `fork_position`; it is not `parent` when
-- the fork lies below the parent's own. The head (position, seq, chain) is kept here, so an append reads one row.
CREATE TABLE branches (
    conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    branch INTEGER NOT NULL, -- 1, 2, 3... in order of creation
    name TEXT NOT NULL,
    parent TEXT, -- the name of the branch that was asked to be forked
    base INTEGER,
    fork_position INTEGER NOT NULL,
    fork_seq INTEGER NOT NULL,
    position INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    chain BLOB NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (conversation, branch),
    UNIQUE (conversation, name)
) STRICT, WITHOUT ROWID;

-- One row for each message, kept by the branch that it was appended to. Not WITHOUT ROWID: bodies are long, and a search
-- index needs a small integer for each row.
CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL,
    branch INTEGER NOT NULL,
    position INTEGER NOT NULL,
    seq INTEGER NOT NULL,     -- messages of the path up to and including this row
    chained INTEGER NOT NULL, -- 1 for kind `message`; other kinds are outside the chain
    chain BLOB NOT NULL,      -- raw hash of the chain up to here
    message_id TEXT NOT NULL,
    body BLOB NOT NULL,       -- the message as JSON without its first field, the id
    counts TEXT,              -- tokens by counter name, as JSON
    UNIQUE (conversation, branch, position),
    UNIQUE (conversation, message_id),
    FOREIGN KEY (conversation, branch) REFERENCES branches (conversation, branch) ON DELETE CASCADE
) STRICT;

-- Rows outside the chain are few. Where the last one before message n lies tells where n lies, so messages need no index
-- by number; see `row_by_seq`.
CREATE INDEX messages_outside_chain ON messages (conversation, branch, seq, position) WHERE chained = 0;

CREATE TABLE checkpoints (
    conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    scenario TEXT NOT NULL,
    version INTEGER NOT NULL,
    format INTEGER NOT NULL,
    body BLOB NOT NULL,
    invalidated TEXT, -- why it is unusable for everyone
    PRIMARY KEY (conversation, scenario, version)
) STRICT;

CREATE TABLE state (
    conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    document BLOB NOT NULL,
    PRIMARY KEY (conversation, name)
) STRICT;
