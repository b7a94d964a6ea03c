"""Writing: how one `Write` becomes rows, inside a transaction that the store has begun. It reads nothing back."""

import json
import sqlite3
import time
from typing import Any

from continuity_server.lineage import COMPRESSION, Covered, Session
from continuity_server.records import HistoryWrite, Write


def run_all(connection: sqlite3.Connection, statements: tuple[tuple[str, tuple[object, ...]], ...]) -> None:
    for statement, values in statements:
        connection.execute(statement, values)


def apply(connection: sqlite3.Connection, write: Write) -> None:
    """One turn: its messages, the end of its parent, its response, its slug and its replay."""
    _write_history(connection, write.owner, write.history)
    session, owner = write.history.session, write.owner
    if write.ended is not None:
        # A conversation that outgrew the context in its very first request has a parent that was never stored.
        _ensure_session(connection, owner, Session(write.ended, write.history.root))
        query = "UPDATE sessions SET next=?, end_reason=? WHERE owner=? AND id=?"
        connection.execute(query, (session, COMPRESSION, owner, write.ended))
    if write.uncompress is not None:
        connection.execute("UPDATE sessions SET compress_next=0 WHERE owner=? AND id=?", (owner, write.uncompress))
    if write.response is not None:
        _write_response(connection, write, *write.response)
    if write.slug is not None:
        values = (owner, write.slug, session, write.response[0] if write.response else None)
        connection.execute(
            "INSERT OR REPLACE INTO conversations (owner, name, session, response_id) VALUES (?,?,?,?)", values
        )
    if write.replay is not None:
        replay = write.replay
        names = (owner, replay.scope, replay.key, replay.fingerprint, replay.root, replay.header)
        connection.execute("INSERT OR REPLACE INTO replays VALUES (?,?,?,?,?,?,?)", (*names, json.dumps(replay.body)))


def _write_history(connection: sqlite3.Connection, owner: str, history: HistoryWrite) -> None:
    _ensure_session(connection, owner, Session(history.session, history.root, history.parent, kind=history.kind))
    if history.replace:
        _new_epoch(connection, owner, history)
    query = (
        "INSERT INTO messages (owner, session, epoch, data) "
        "VALUES (?1, ?2, (SELECT epoch FROM sessions WHERE owner=?1 AND id=?3), ?4)"
    )
    rows = ((owner, history.line, history.session, json.dumps(message)) for message in history.messages)
    connection.executemany(query, rows)


def _ensure_session(connection: sqlite3.Connection, owner: str, session: Session) -> None:
    query = "INSERT OR IGNORE INTO sessions (owner, id, root, parent, kind, created) VALUES (?,?,?,?,?,?)"
    connection.execute(query, (owner, session.id, session.root, session.parent, session.kind, int(time.time())))


def _new_epoch(connection: sqlite3.Connection, owner: str, history: HistoryWrite) -> None:
    """Replace the history; the old one stays only where a response may still branch from it (SLUG-13)."""
    covered = history.covered or Covered()
    query = "UPDATE sessions SET epoch=epoch+1, covered_count=?, covered_digest=? WHERE owner=? AND id=?"
    connection.execute(query, (covered.count, covered.digest, owner, history.session))
    query = (
        "DELETE FROM messages WHERE owner=?1 AND session=?2 "
        "AND NOT EXISTS (SELECT 1 FROM responses WHERE owner=?1 AND session=?3)"
    )
    connection.execute(query, (owner, history.line, history.session))


def _write_response(connection: sqlite3.Connection, write: Write, response: str, body: dict[str, Any]) -> None:
    history = write.history
    query = (
        "INSERT INTO responses (owner, id, session, epoch, upto, body) VALUES (?1, ?2, ?3, "
        "(SELECT epoch FROM sessions WHERE owner=?1 AND id=?3), "
        "(SELECT max(seq) FROM messages WHERE owner=?1 AND session=?5), ?4)"
    )
    connection.execute(query, (write.owner, response, history.session, json.dumps(body), history.line))
    query = (
        "DELETE FROM responses WHERE owner=?1 AND seq<="
        "(SELECT seq FROM responses WHERE owner=?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)"
    )
    connection.execute(query, (write.owner, write.max_responses))
