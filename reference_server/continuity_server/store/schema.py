"""The tables of the store. Every row belongs to an owner: a session is named by (principal, id).

`conversations` and `responses` still accept what a program with the old schema writes (MIGRATE-06): the old columns have their old names, and the new ones a
default or NULL. Such a row has no session; that is how `backfill.py` finds it.
"""

from typing import Final

_OLD_SHAPE: Final = """
CREATE TABLE IF NOT EXISTS responses (
    response_id TEXT,
    data TEXT,
    accessed_at REAL,
    owner TEXT NOT NULL DEFAULT {owner},
    session TEXT,
    epoch INTEGER,
    upto INTEGER,
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
CREATE INDEX IF NOT EXISTS responses_to_adopt ON responses (session) WHERE session IS NULL;
CREATE INDEX IF NOT EXISTS conversations_by_session ON conversations (owner, session);
CREATE INDEX IF NOT EXISTS conversations_by_response ON conversations (owner, response_id);
"""
_NEW: Final = """
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
    created INTEGER NOT NULL,
    PRIMARY KEY (owner, id)
);
CREATE INDEX IF NOT EXISTS sessions_by_root ON sessions (owner, root);
CREATE INDEX IF NOT EXISTS sessions_by_age ON sessions (owner);
CREATE INDEX IF NOT EXISTS sessions_by_parent ON sessions (owner, parent);
CREATE TABLE IF NOT EXISTS messages (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    session TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS messages_by_session ON messages (owner, session, epoch, seq);
CREATE TABLE IF NOT EXISTS conversation_objects (
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    created INTEGER NOT NULL,
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
);
"""


def statements(old_writers_owner: str) -> list[str]:
    """Return the statements that make the tables. Rows that a program with the old schema writes belong to this owner (a quoted SQL text)."""
    whole = _OLD_SHAPE.replace("{owner}", old_writers_owner) + _NEW
    return [statement for statement in whole.split(";\n") if statement.strip()]
