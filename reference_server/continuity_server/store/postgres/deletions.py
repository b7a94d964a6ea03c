"""What is deleted on PostgreSQL, and with what, inside a transaction that the store has begun. The steps are those of `store/deletions.py`."""

from typing import Any, Final

from continuity_server.store.postgres.write import execute

_WITH_SESSION: Final = (
    "SELECT 1 FROM sessions WHERE owner=$1 AND id=$2 FOR UPDATE",
    "DELETE FROM messages WHERE owner=$1 AND session=$2",
    # A slug of the old schema is found by its response, so slugs go before responses.
    "DELETE FROM conversation_objects WHERE owner=$1 AND id IN (SELECT name FROM conversations WHERE owner=$1 AND session=$2)",
    "DELETE FROM conversations WHERE owner=$1 AND session=$2",
    "DELETE FROM conversations WHERE owner=$1 AND session IS NULL AND response_id IN (SELECT response_id FROM responses WHERE owner=$1 AND session=$2)",
    "DELETE FROM responses WHERE owner=$1 AND session=$2",
    "DELETE FROM replays WHERE owner=$1 AND (scope=$2 OR root=$2)",
    "DELETE FROM sessions WHERE owner=$1 AND id=$2",
)


async def session(connection: Any, owner: str, ident: str) -> None:
    """DELETE-01: nothing of a deleted session can be seen again: not by its id, slug, responses or Idempotency-Keys."""
    for statement in _WITH_SESSION:
        await execute(connection, statement, owner, ident)


async def conversation(connection: Any, owner: str, ident: str) -> None:
    """SLUG-24: delete a conversation object. Its slug is deleted with its session; before its first turn it has neither."""
    await execute(connection, "DELETE FROM conversation_objects WHERE owner=$1 AND id=$2", owner, ident)


async def response(connection: Any, owner: str, ident: str) -> None:
    """SLUG-15, -18: delete this response only. Its slug goes on without it; one of the old schema learns its session before the response is gone."""
    query = (
        "UPDATE conversations SET response_id=NULL, session=coalesce(session, (SELECT session FROM responses "
        "WHERE owner=$1 AND response_id=$2)) WHERE owner=$1 AND response_id=$2"
    )
    await execute(connection, query, owner, ident)
    await execute(connection, "DELETE FROM responses WHERE owner=$1 AND response_id=$2", owner, ident)
