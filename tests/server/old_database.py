"""Databases of the old schema, made with SQLite alone, and a writer of the old shape."""

import json
import sqlite3
from contextlib import closing

SCHEMA = """
CREATE TABLE conversations (name TEXT PRIMARY KEY, response_id TEXT NOT NULL);
CREATE TABLE responses (response_id TEXT PRIMARY KEY, data TEXT NOT NULL, accessed_at REAL NOT NULL);
"""


def history(*texts):
    """User messages, each with its answer."""
    return [
        message
        for text in texts
        for message in ({"role": "user", "content": text}, {"role": "assistant", "content": "Yes."})
    ]


def data(session, *texts, **more):
    return {"session_id": session, "conversation_history": history(*texts), **more}


def make(path, responses, slugs):
    """A database as the servers of before left it: `{response: data}` and `{slug: response}`."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(SCHEMA)
    write(path, responses, slugs)


def write(path, responses, slugs):
    """The two statements of a writer of the old shape."""
    with closing(sqlite3.connect(path, timeout=10)) as database, database:
        for number, (response, said) in enumerate(responses.items()):
            row = (response, said if isinstance(said, str) else json.dumps(said), 1_700_000_000.5 + number)
            database.execute("INSERT OR REPLACE INTO responses (response_id, data, accessed_at) VALUES (?, ?, ?)", row)
        for pair in slugs.items():
            database.execute("INSERT OR REPLACE INTO conversations (name, response_id) VALUES (?, ?)", pair)


def rows(path):
    """What a reader of the old shape finds: `(slugs, responses)`."""
    with closing(sqlite3.connect(path, timeout=10)) as database:
        slugs = dict(database.execute("SELECT name, response_id FROM conversations"))
        responses = dict(database.execute("SELECT response_id, data FROM responses"))
    return slugs, responses


def everything(path):
    """All rows of all tables, and the schema."""
    with closing(sqlite3.connect(path, timeout=10)) as database:
        tables = database.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
        found = {
            name: sorted(map(repr, database.execute(f'SELECT * FROM "{name}"')))
            for name, sql in tables
            if sql and sql.startswith("CREATE TABLE")
        }
    return tables, found
