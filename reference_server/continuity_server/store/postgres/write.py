"""How one `Write` becomes rows on PostgreSQL, inside a transaction that the store has begun. The steps are those of `store/write.py`."""

import time
from collections.abc import Iterable
from typing import Any

from continuity_server import fast_json
from continuity_server.rules.compress import Covered, Session
from continuity_server.rules.messages import Message
from continuity_server.store.postgres.database import stored
from continuity_server.store.records import Ended, HistoryWrite, Replay, SlugWrite, Write


async def execute(connection: Any, query: str, *values: object) -> None:
    await connection.execute(query, *map(stored, values))


async def apply(connection: Any, write: Write) -> None:
    """Store one turn: its messages, the mark that its parent has ended, its response, its slug and its replay."""
    owner, history = write.owner, write.history
    epoch, upto = await _write_history(connection, owner, history)
    if write.ended is not None:
        await _end(connection, owner, history, write.ended)
    if write.compressed_on_request is not None:
        query = "UPDATE sessions SET compress_next=0 WHERE owner=$1 AND id=$2"
        await execute(connection, query, owner, write.compressed_on_request)
    if write.previous is not None:
        await touch(connection, owner, write.previous)
    if write.slug is not None:
        await _write_slug(connection, owner, write.slug, write.response[0] if write.response else None)
    if write.response is not None:
        await _write_response(connection, (owner, history.session, epoch, upto), *write.response)
        await evict(connection, owner, write.max_responses)
    if write.replay is not None:
        await _write_replay(connection, write.replay)


async def ensure_session(connection: Any, owner: str, session: Session) -> None:
    """Create a session, unless it is there."""
    query = (
        "INSERT INTO sessions (owner, id, root, parent, kind, created) VALUES ($1,$2,$3,$4,$5,$6) "
        "ON CONFLICT (owner, id) DO NOTHING"
    )
    await execute(connection, query, owner, session.id, session.root, session.parent, session.kind, int(time.time()))


async def append(connection: Any, owner: str, session: str, epoch: int, messages: Iterable[Message]) -> int:
    """Add messages to a session whose row is locked, and return the number of the newest one."""
    query = "SELECT coalesce(max(seq), 0) FROM messages WHERE owner=$1 AND session=$2 AND epoch=$3"
    last = int(await connection.fetchval(query, owner, stored(session), epoch))
    texts = [fast_json.written(message).decode() for message in messages]
    if not texts:
        return last
    query = (
        "INSERT INTO messages (owner, session, epoch, seq, data) "
        "SELECT $1, $2, $3, $4 + place, data FROM unnest($5::text[]) WITH ORDINALITY AS added (data, place)"
    )
    await connection.execute(query, stored(owner), stored(session), epoch, last, texts)
    return last + len(texts)


async def touch(connection: Any, owner: str, response: str) -> None:
    """Note that a response was used: the least recently used is the first to be evicted."""
    query = "UPDATE responses SET accessed_at=greatest($3, coalesce(accessed_at, 0)) WHERE owner=$1 AND response_id=$2"
    await execute(connection, query, owner, response, time.time())


async def evict(connection: Any, owner: str, most: int) -> None:
    """SLUG-05, -19: of more responses than this, the least recently used go. Their slugs stay."""
    query = (
        "DELETE FROM responses WHERE owner=$1 AND response_id IN (SELECT response_id FROM responses WHERE owner=$1 "
        "ORDER BY accessed_at DESC, born DESC, response_id OFFSET $2)"
    )
    await execute(connection, query, owner, most)


async def _write_history(connection: Any, owner: str, history: HistoryWrite) -> tuple[int, int]:
    """Store the messages. Returns the epoch that they are in, and the number of its newest message."""
    await ensure_session(connection, owner, Session(history.session, history.root, history.parent, kind=history.kind))
    if history.replace:
        await _new_epoch(connection, owner, history)
        await _forget(connection, owner, history.session)
    query = "SELECT epoch FROM sessions WHERE owner=$1 AND id=$2 FOR UPDATE"
    epoch = int(await connection.fetchval(query, stored(owner), stored(history.session)))
    return epoch, await append(connection, owner, history.session, epoch, history.messages)


async def _new_epoch(connection: Any, owner: str, history: HistoryWrite) -> None:
    covered = history.covered or Covered()
    query = "UPDATE sessions SET epoch=epoch+1, covered_count=$3, covered_digest=$4 WHERE owner=$1 AND id=$2"
    await execute(connection, query, owner, history.session, covered.count, covered.digest)


async def _forget(connection: Any, owner: str, session: str) -> None:
    """Drop the history of a session, unless a response may still branch from it (SLUG-13)."""
    query = (
        "DELETE FROM messages WHERE owner=$1 AND session=$2 "
        "AND NOT EXISTS (SELECT 1 FROM responses WHERE owner=$1 AND session=$2)"
    )
    await execute(connection, query, owner, session)


async def _end(connection: Any, owner: str, history: HistoryWrite, ended: Ended) -> None:
    # If the very first request is too large for the context, the session that it replaces is not stored yet: create it.
    await ensure_session(connection, owner, Session(ended.parent, history.root))
    query = "UPDATE sessions SET next=$3, end_reason=$4 WHERE owner=$1 AND id=$2"
    await execute(connection, query, owner, ended.parent, history.session, ended.reason)


async def _write_slug(connection: Any, owner: str, slug: SlugWrite, response: str | None) -> None:
    query = (
        "INSERT INTO conversations (owner, name, session, response_id) VALUES ($1,$2,$3,$4) "
        "ON CONFLICT (owner, name) DO UPDATE SET session=excluded.session, response_id=excluded.response_id"
    )
    await execute(connection, query, owner, slug.name, slug.session, response)


async def _write_response(
    connection: Any, place: tuple[str, str, int, int], response: str, body: dict[str, Any]
) -> None:
    """Store a response and its place: owner, session, epoch and newest message. It is the youngest, whatever the clock says."""
    owner, session, epoch, upto = place
    query = (
        "INSERT INTO responses (owner, response_id, session, data, epoch, upto, accessed_at) VALUES ($1,$2,$3,$4,$5,$6, "
        "greatest($7, (SELECT coalesce(max(accessed_at), 0) FROM responses WHERE owner=$1)))"
    )
    data = fast_json.written({"response": body}).decode()
    await execute(connection, query, owner, response, session, data, epoch, upto, time.time())


async def _write_replay(connection: Any, replay: Replay) -> None:
    query = (
        "INSERT INTO replays (owner, scope, key, fingerprint, root, header, body) VALUES ($1,$2,$3,$4,$5,$6,$7) "
        "ON CONFLICT (owner, scope, key) DO UPDATE SET fingerprint=excluded.fingerprint, root=excluded.root, "
        "header=excluded.header, body=excluded.body"
    )
    names = (replay.owner, replay.scope, replay.key, replay.fingerprint, replay.root, replay.header)
    await execute(connection, query, *names, fast_json.written(replay.body).decode())
