"""The tables on PostgreSQL. They have what those of SQLite have (`store/schema.py`), without anything that only PostgreSQL itself knows.

Messages are numbered within their session and epoch, by the transaction that has locked the session. A sequence would do on one PostgreSQL; distributed databases give
each of their nodes a stretch of it, and then a later message may have a lower number.
"""

from typing import Final

LOCKS: Final = """
CREATE TABLE IF NOT EXISTS replicas (
    id TEXT PRIMARY KEY,
    seen TIMESTAMPTZ NOT NULL
);
CREATE TABLE IF NOT EXISTS turn_locks (
    name TEXT PRIMARY KEY,
    holder TEXT,
    taking TEXT,
    waiting TEXT
);
CREATE TABLE IF NOT EXISTS upgrades (
    name TEXT PRIMARY KEY
)
"""
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS responses (
    response_id TEXT,
    data TEXT,
    accessed_at DOUBLE PRECISION,
    owner TEXT NOT NULL DEFAULT {owner},
    session TEXT,
    epoch INTEGER,
    upto BIGINT,
    born TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (owner, response_id)
);
CREATE TABLE IF NOT EXISTS conversations (
    name TEXT,
    response_id TEXT,
    owner TEXT NOT NULL DEFAULT {owner},
    session TEXT,
    PRIMARY KEY (owner, name)
);
CREATE INDEX IF NOT EXISTS responses_by_age ON responses (owner, accessed_at);
CREATE INDEX IF NOT EXISTS responses_by_session ON responses (owner, session);
CREATE INDEX IF NOT EXISTS responses_to_adopt ON responses (owner) WHERE session IS NULL;
CREATE INDEX IF NOT EXISTS conversations_by_session ON conversations (owner, session);
CREATE INDEX IF NOT EXISTS conversations_by_response ON conversations (owner, response_id);
CREATE TABLE IF NOT EXISTS sessions (
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    root TEXT NOT NULL,
    parent TEXT,
    next TEXT,
    kind TEXT NOT NULL DEFAULT 'session',
    end_reason TEXT,
    epoch INTEGER NOT NULL DEFAULT 1,
    covered_count INTEGER,
    covered_digest TEXT,
    compress_next INTEGER NOT NULL DEFAULT 0,
    created BIGINT NOT NULL,
    born TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (owner, id)
);
CREATE INDEX IF NOT EXISTS sessions_by_root ON sessions (owner, root);
CREATE INDEX IF NOT EXISTS sessions_by_age ON sessions (owner, born, id);
CREATE INDEX IF NOT EXISTS sessions_by_parent ON sessions (owner, parent);
CREATE TABLE IF NOT EXISTS messages (
    owner TEXT NOT NULL,
    session TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    seq BIGINT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (owner, session, epoch, seq)
);
CREATE TABLE IF NOT EXISTS conversation_objects (
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    created BIGINT NOT NULL,
    metadata TEXT NOT NULL,
    PRIMARY KEY (owner, id)
);
CREATE TABLE IF NOT EXISTS replays (
    owner TEXT NOT NULL,
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    root TEXT NOT NULL,
    header TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (owner, scope, key)
)
"""
SESSION: Final = (
    "owner, id, root, parent, next, kind, end_reason, epoch, covered_count, covered_digest, compress_next, created"
)
"""The columns of a session, in the order of a row of SQLite."""
REPLAY: Final = "owner, scope, key, fingerprint, root, header, body"


def lock_tables() -> list[str]:
    """Return the statements that make what the processes need to wait for each other."""
    return LOCKS.split(";\n")


def tables(old_writers_owner: str) -> list[str]:
    """Return the statements that make the tables. Rows that a program with the old schema writes belong to this owner."""
    quoted = "'" + old_writers_owner.replace("'", "''") + "'"
    return _TABLES.replace("{owner}", quoted).split(";\n")
