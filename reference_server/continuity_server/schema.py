"""The tables of the store. Every row belongs to an owner: a session is named by (principal, id)."""

from typing import Final

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS sessions (
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    root TEXT NOT NULL,
    parent TEXT,
    next TEXT,
    kind TEXT NOT NULL DEFAULT 'session',
    end_reason TEXT,
    epoch INTEGER NOT NULL DEFAULT 1,
    covered_count INTEGER NOT NULL DEFAULT 0,
    covered_digest TEXT NOT NULL DEFAULT '',
    compress_next INTEGER NOT NULL DEFAULT 0,
    created INTEGER NOT NULL,
    PRIMARY KEY (owner, id)
);
CREATE INDEX IF NOT EXISTS sessions_by_root ON sessions (owner, root);
CREATE INDEX IF NOT EXISTS sessions_by_parent ON sessions (owner, parent);
CREATE TABLE IF NOT EXISTS messages (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    session TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS messages_by_session ON messages (owner, session, epoch, seq);
CREATE TABLE IF NOT EXISTS responses (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    session TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    upto INTEGER NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (owner, id)
);
CREATE INDEX IF NOT EXISTS responses_by_age ON responses (owner, seq);
CREATE INDEX IF NOT EXISTS responses_by_session ON responses (owner, session);
CREATE TABLE IF NOT EXISTS conversations (
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    session TEXT NOT NULL,
    response_id TEXT,
    PRIMARY KEY (owner, name)
);
CREATE INDEX IF NOT EXISTS conversations_by_session ON conversations (owner, session);
CREATE TABLE IF NOT EXISTS replays (
    owner TEXT NOT NULL,
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    root TEXT NOT NULL,
    header TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (owner, scope, key)
);
"""

# DELETE-01: the whole compression chain, with its slugs, responses and replays. Forks and branches have roots of their own, and stay.
DELETE_CHAIN: Final = (
    "DELETE FROM messages WHERE owner=?1 AND session IN (SELECT id FROM sessions WHERE owner=?1 AND root=?2)",
    "DELETE FROM responses WHERE owner=?1 AND session IN (SELECT id FROM sessions WHERE owner=?1 AND root=?2)",
    "DELETE FROM conversations WHERE owner=?1 AND session IN (SELECT id FROM sessions WHERE owner=?1 AND root=?2)",
    "DELETE FROM replays WHERE owner=?1 AND (scope=?2 OR root=?2)",
    "DELETE FROM sessions WHERE owner=?1 AND root=?2",
)
