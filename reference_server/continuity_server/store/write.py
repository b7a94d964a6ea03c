"""How one `Write` becomes rows, inside a transaction that the store has begun."""

import sqlite3
import time
from typing import Any

from continuity_server import fast_json
from continuity_server.rules.compress import Covered, Session
from continuity_server.store.histories import Histories
from continuity_server.store.records import Ended, HistoryWrite, Replay, SlugWrite, StoredConversation, Write


def apply(connection: sqlite3.Connection, histories: Histories, write: Write) -> None:
    """Store one turn: its messages, the mark that its parent has ended, its response, its slug and its replay."""
    owner, history = write.owner, write.history
    epoch = _write_history(connection, histories, owner, history)
    if write.ended is not None:
        _end(connection, owner, history, write.ended)
    if write.compressed_on_request is not None:
        connection.execute(
            "UPDATE sessions SET compress_next=0 WHERE owner=? AND id=?", (owner, write.compressed_on_request)
        )
    if write.previous is not None:
        touch(connection, owner, write.previous)
    if write.slug is not None:
        _write_slug(connection, owner, write.slug, write.response[0] if write.response else None)
    if write.response is not None:
        upto = histories.last(owner, history.session, epoch)
        _write_response(connection, (owner, history.session, epoch, upto), *write.response)
    if write.replay is not None:
        _write_replay(connection, write.replay)


def ensure_session(connection: sqlite3.Connection, owner: str, session: Session) -> None:
    """Create a session, unless it is there."""
    query = "INSERT OR IGNORE INTO sessions (owner, id, root, parent, kind, created) VALUES (?,?,?,?,?,?)"
    connection.execute(query, (owner, session.id, session.root, session.parent, session.kind, int(time.time())))


def add_conversation(connection: sqlite3.Connection, owner: str, made: StoredConversation) -> None:
    """Store a conversation object. Its slug and its session are stored with its first turn."""
    values = (owner, made.id, made.created, fast_json.written(made.metadata).decode())
    connection.execute("INSERT INTO conversation_objects (owner, id, created, metadata) VALUES (?,?,?,?)", values)


def touch(connection: sqlite3.Connection, owner: str, response: str) -> None:
    """Note that a response was used: the least recently used is the first to be evicted."""
    query = "UPDATE responses SET accessed_at=max(?3, coalesce(accessed_at, 0)) WHERE owner=?1 AND response_id=?2"
    connection.execute(query, (owner, response, time.time()))


def _write_history(connection: sqlite3.Connection, histories: Histories, owner: str, history: HistoryWrite) -> int:
    """Store the messages, and return the epoch that they are in."""
    ensure_session(connection, owner, Session(history.session, history.root, history.parent, kind=history.kind))
    if history.replace:
        _new_epoch(connection, owner, history)
        histories.forget(owner, history.session)
    query = "SELECT epoch FROM sessions WHERE owner=? AND id=?"
    epoch = int(connection.execute(query, (owner, history.session)).fetchone()[0])
    histories.append(owner, history.session, epoch, history.messages)
    return epoch


def _new_epoch(connection: sqlite3.Connection, owner: str, history: HistoryWrite) -> None:
    covered = history.covered or Covered()
    query = "UPDATE sessions SET epoch=epoch+1, covered_count=?, covered_digest=? WHERE owner=? AND id=?"
    connection.execute(query, (covered.count, covered.digest, owner, history.session))


def _end(connection: sqlite3.Connection, owner: str, history: HistoryWrite, ended: Ended) -> None:
    # If the very first request is too large for the context, the session that it replaces is not stored yet: create it.
    ensure_session(connection, owner, Session(ended.parent, history.root))
    query = "UPDATE sessions SET next=?, end_reason=? WHERE owner=? AND id=?"
    connection.execute(query, (history.session, ended.reason, owner, ended.parent))


def _write_slug(connection: sqlite3.Connection, owner: str, slug: SlugWrite, response: str | None) -> None:
    query = "INSERT OR REPLACE INTO conversations (owner, name, session, response_id) VALUES (?,?,?,?)"
    connection.execute(query, (owner, slug.name, slug.session, response))


def _write_response(
    connection: sqlite3.Connection, place: tuple[str, str, int, int], response: str, body: dict[str, Any]
) -> None:
    """Store a response and its place: owner, session, epoch and newest message. It is the youngest, whatever the clock says."""
    owner, session, epoch, upto = place
    query = (
        "INSERT INTO responses (owner, response_id, session, data, epoch, upto, accessed_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, "
        "max(?7, (SELECT coalesce(max(accessed_at), 0) FROM responses WHERE owner=?1)))"
    )
    data = fast_json.written({"response": body}).decode()
    connection.execute(query, (owner, response, session, data, epoch, upto, time.time()))


def _write_replay(connection: sqlite3.Connection, replay: Replay) -> None:
    names = (replay.owner, replay.scope, replay.key, replay.fingerprint, replay.root, replay.header)
    body = fast_json.written(replay.body).decode()
    connection.execute("INSERT OR REPLACE INTO replays VALUES (?,?,?,?,?,?,?)", (*names, body))
