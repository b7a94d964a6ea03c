"""Writing: how one `Write` becomes rows, inside a transaction that the store has begun. It reads nothing back."""

import json
import sqlite3
import time
from collections.abc import Iterable
from typing import Any

from continuity_server.rules.compress import Covered, Session
from continuity_server.rules.messages import Message
from continuity_server.store.records import Ended, HistoryWrite, Replay, SlugWrite, Write


def run_all(connection: sqlite3.Connection, statements: tuple[tuple[str, tuple[object, ...]], ...]) -> None:
    for statement, values in statements:
        connection.execute(statement, values)


def apply(connection: sqlite3.Connection, write: Write) -> None:
    """One turn: its messages, the end of its parent, its response, its slug and its replay."""
    owner = write.owner
    _write_history(connection, owner, write.history)
    if write.ended is not None:
        _end(connection, owner, write.history, write.ended)
    if write.uncompress is not None:
        connection.execute("UPDATE sessions SET compress_next=0 WHERE owner=? AND id=?", (owner, write.uncompress))
    if write.previous is not None:
        touch(connection, owner, write.previous)
    if write.slug is not None:
        _write_slug(connection, owner, write.slug, write.response[0] if write.response else None)
    if write.response is not None:
        _write_response(connection, write, *write.response)
        _evict(connection, write)
    if write.replay is not None:
        _write_replay(connection, write.replay)


def append(connection: sqlite3.Connection, line: tuple[str, str], epoch: int, messages: Iterable[Message]) -> list[int]:
    """Add messages to a line (its owner and its name); gives their numbers."""
    query = "INSERT INTO messages (owner, session, epoch, data) VALUES (?,?,?,?)"
    return [connection.execute(query, (*line, epoch, json.dumps(said))).lastrowid or 0 for said in messages]


def ensure_session(connection: sqlite3.Connection, owner: str, session: Session) -> None:
    query = "INSERT OR IGNORE INTO sessions (owner, id, root, parent, kind, created) VALUES (?,?,?,?,?,?)"
    connection.execute(query, (owner, session.id, session.root, session.parent, session.kind, int(time.time())))


def touch(connection: sqlite3.Connection, owner: str, response: str) -> None:
    """A response that is used is the last to be evicted."""
    query = "UPDATE responses SET accessed_at=max(?3, coalesce(accessed_at, 0)) WHERE owner=?1 AND response_id=?2"
    connection.execute(query, (owner, response, time.time()))


def _write_history(connection: sqlite3.Connection, owner: str, history: HistoryWrite) -> None:
    ensure_session(connection, owner, Session(history.session, history.root, history.parent, kind=history.kind))
    if history.replace:
        _new_epoch(connection, owner, history)
    query = "SELECT epoch FROM sessions WHERE owner=? AND id=?"
    epoch = connection.execute(query, (owner, history.session)).fetchone()[0]
    append(connection, (owner, history.line), epoch, history.messages)


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


def _end(connection: sqlite3.Connection, owner: str, history: HistoryWrite, ended: Ended) -> None:
    # A conversation that outgrew the context in its very first request has a parent that was never stored.
    ensure_session(connection, owner, Session(ended.parent, history.root))
    query = "UPDATE sessions SET next=?, end_reason=? WHERE owner=? AND id=?"
    connection.execute(query, (history.session, ended.reason, owner, ended.parent))


def _write_slug(connection: sqlite3.Connection, owner: str, slug: SlugWrite, response: str | None) -> None:
    query = "INSERT OR REPLACE INTO conversations (owner, name, session, response_id, old) VALUES (?,?,?,?,?)"
    connection.execute(query, (owner, slug.name, slug.session, response, slug.session is None))


def _write_response(connection: sqlite3.Connection, write: Write, response: str, body: dict[str, Any]) -> None:
    """Where the response stands is the end of its session; it is the youngest, whatever the clock says."""
    query = (
        "INSERT INTO responses (owner, response_id, session, data, epoch, upto, accessed_at) VALUES (?1, ?2, ?3, ?4, "
        "(SELECT epoch FROM sessions WHERE owner=?1 AND id=?3), "
        "(SELECT coalesce(max(seq), 0) FROM messages WHERE owner=?1 AND session=?5), "
        "max(?6, (SELECT coalesce(max(accessed_at), 0) FROM responses WHERE owner=?1)))"
    )
    history, data = write.history, json.dumps({"response": body})
    connection.execute(query, (write.owner, response, history.session, data, history.line, time.time()))


def _evict(connection: sqlite3.Connection, write: Write) -> None:
    """SLUG-05: of more responses than the cache holds the least recently used go; their slugs stay."""
    query = (
        "SELECT owner, response_id FROM responses WHERE owner=? ORDER BY accessed_at DESC, rowid DESC LIMIT -1 OFFSET ?"
    )
    gone = connection.execute(query, (write.owner, write.cache.responses)).fetchall()
    connection.executemany("DELETE FROM responses WHERE owner=? AND response_id=?", gone)
    if write.cache.takes_slugs:
        connection.executemany("DELETE FROM conversations WHERE owner=? AND response_id=?", gone)


def _write_replay(connection: sqlite3.Connection, replay: Replay) -> None:
    names = (replay.owner, replay.scope, replay.key, replay.fingerprint, replay.root, replay.header)
    connection.execute("INSERT OR REPLACE INTO replays VALUES (?,?,?,?,?,?,?)", (*names, json.dumps(replay.body)))
