"""Sessions, messages, slugs and responses in SQLite.

Messages form a tree: each row names the message before it, and a session or a response points to its last message
(`head`). So a response keeps the history up to itself whatever comes later (SLUG-13), and a branch copies nothing.
"""
import asyncio
import json
import logging
import sqlite3
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

from protocol import ApiError, Turn

SCHEMA = """
CREATE TABLE IF NOT EXISTS messages (number INTEGER PRIMARY KEY, before INTEGER, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sessions (principal TEXT, id TEXT, head INTEGER NOT NULL, PRIMARY KEY (principal, id));
CREATE TABLE IF NOT EXISTS slugs (principal TEXT, slug TEXT, session_id TEXT NOT NULL,
    PRIMARY KEY (principal, slug), UNIQUE (principal, session_id));
CREATE TABLE IF NOT EXISTS responses (number INTEGER PRIMARY KEY AUTOINCREMENT, principal TEXT, id TEXT,
    session_id TEXT NOT NULL, head INTEGER NOT NULL, body TEXT NOT NULL, UNIQUE (principal, id));
"""


class Store:
    """One connection in one thread (HISTORY-12): every query is one transaction, and they run one after the other."""

    def __init__(self, path: str, keep_responses: int):
        self.path, self.keep_responses = path, keep_responses
        self.db, self.thread = None, ThreadPoolExecutor(max_workers=1)
        self.faults = set()  # "read" or "write", of a conformance run

    async def read(self, query, *args):
        return await asyncio.get_running_loop().run_in_executor(self.thread, self._run, "read", query, args)

    async def write(self, query, *args):
        """If the caller is cancelled, the transaction still ends whole, before any later query (STREAM-03)."""
        return await asyncio.get_running_loop().run_in_executor(self.thread, self._run, "write", query, args)

    def _run(self, kind, query, args):
        try:
            if kind in self.faults:
                raise sqlite3.OperationalError("fault of a conformance run")
            db = self._open()
            db.execute("BEGIN IMMEDIATE" if kind == "write" else "BEGIN")
            with db:  # commits, or rolls back if the query raises
                return query(db, *args)
        except sqlite3.Error as error:  # degraded: refuse. The next query opens the store anew (HISTORY-05, HISTORY-14)
            logging.error("store: %s", error)
            self.db = None
            raise ApiError(503, "history_unavailable", "The history is unavailable. Try again later.") from None

    def _open(self) -> sqlite3.Connection:
        if self.db is None:
            db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            db.row_factory = sqlite3.Row
            # A commit survives SIGKILL, and even a power cut (DURABLE-02).
            db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;" + SCHEMA)
            self.db = db
        return self.db


# Queries. Each gets the connection within a transaction, and everything is looked up by principal and id (ISOLATE-06).

Place = namedtuple("Place", "session_id head history")  # where a turn runs, and what came before it


def find_place(db, turn: Turn) -> Place:
    response, named = None, None
    if turn.previous is not None:
        response = named = find_response(db, turn.principal, turn.previous, "previous_response")  # SLUG-07
    elif turn.slug is not None:
        named = _slug(db, "slug", turn.principal, turn.slug)
    session_id = named["session_id"] if named else turn.header or turn.own_id
    session = db.execute("SELECT head FROM sessions WHERE principal = ? AND id = ?",
                         (turn.principal, session_id)).fetchone()
    head = session["head"] if session else None
    if response and response["head"] != head:  # something came after it, so this is a branch (SLUG-20)
        session_id, head = turn.own_id, response["head"]
    taken = turn.slug is not None and not named and _slug(db, "session_id", turn.principal, session_id)
    if taken or turn.header not in (None, session_id):  # ECHO-02, ECHO-11, SLUG-01, SLUG-26
        raise ApiError(400, "session_conflict", "Header and body select two sessions.", "X-Hermes-Session-Id")
    return Place(session_id, head, _history(db, head))


def _slug(db, column, principal, value):
    return db.execute(f"SELECT * FROM slugs WHERE principal = ? AND {column} = ?", (principal, value)).fetchone()


def _history(db, head) -> list[dict]:
    rows = db.execute("""WITH RECURSIVE line (number, before, body) AS (SELECT * FROM messages WHERE number = ?
        UNION ALL SELECT m.* FROM messages m JOIN line ON m.number = line.before)
        SELECT body FROM line ORDER BY number""", (head,))
    return [json.loads(row["body"]) for row in rows]


def commit(db, turn: Turn, place: Place, answer, keep: int):
    """The whole turn in one transaction: input, answer, session, response and slug (4.8)."""
    head, response = place.head, answer.plain()
    for message in [*turn.new, {"role": "assistant", "content": answer.text}]:
        head = db.execute("INSERT INTO messages (before, body) VALUES (?, ?)", (head, json.dumps(message))).lastrowid
    db.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?)", (turn.principal, place.session_id, head))
    if turn.slug is not None:  # a slug names its session, so that no eviction can lose it (SLUG-03)
        db.execute("INSERT OR REPLACE INTO slugs VALUES (?, ?, ?)", (turn.principal, turn.slug, place.session_id))
    if response["object"] == "response":  # a chat completion is not kept under its id
        db.execute("INSERT INTO responses (principal, id, session_id, head, body) VALUES (?, ?, ?, ?, ?)",
                   (turn.principal, response["id"], place.session_id, head, json.dumps(response)))
        db.execute("DELETE FROM responses WHERE principal = ?1 AND number NOT IN (SELECT number FROM responses"
                   " WHERE principal = ?1 ORDER BY number DESC LIMIT ?2)", (turn.principal, keep))  # SLUG-19


def find_response(db, principal, response_id, what="response"):
    query = "SELECT * FROM responses WHERE principal = ? AND id = ?"
    row = db.execute(query, (principal, response_id)).fetchone()
    if row is None:
        raise ApiError(404, f"{what}_not_found", "There is no such response.", f"{what}_id")
    return row


def delete_response(db, principal, response_id):
    """The response only (SLUG-18). Its messages belong to its session, which stays."""
    number = find_response(db, principal, response_id)["number"]
    db.execute("DELETE FROM responses WHERE number = ?", (number,))
