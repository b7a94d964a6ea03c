"""What is deleted, and with what: sessions, responses, and responses that are evicted because there are too many."""

import sqlite3


class Deletions:
    """Deletes rows, inside a transaction that the store has begun."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def session(self, owner: str, session: str) -> None:
        """DELETE-01: nothing of a deleted session can be seen again: not by its id, slug, responses or Idempotency-Keys."""
        self._messages(owner, session)
        self._slugs(owner, session)
        self._responses(owner, session)
        self._replays(owner, session)
        self._row(owner, session)

    def conversation(self, owner: str, conversation: str) -> None:
        """SLUG-24: delete a conversation object. Its slug is deleted with its session; before its first turn it has neither."""
        self._connection.execute("DELETE FROM conversation_objects WHERE owner=? AND id=?", (owner, conversation))

    def response(self, owner: str, response: str) -> None:
        """SLUG-15, -18: delete this response only. Its slug keeps the session."""
        self._release_slug(owner, response)
        self._delete_response(owner, response)

    def evict(self, owner: str, most: int) -> None:
        """SLUG-05, -19: of more responses than this, the least recently used go. Their slugs stay."""
        for response in self._least_recently_used(owner, most):
            self._delete_response(owner, response)

    def _messages(self, owner: str, session: str) -> None:
        self._connection.execute("DELETE FROM messages WHERE owner=? AND session=?", (owner, session))

    def _slugs(self, owner: str, session: str) -> None:
        """Delete the slugs of a session, with the objects of those that the server named. A slug of the old schema is found by its response, so slugs go before responses."""
        query = (
            "DELETE FROM conversation_objects WHERE owner=?1 AND id IN "
            "(SELECT name FROM conversations WHERE owner=?1 AND session=?2)"
        )
        self._connection.execute(query, (owner, session))
        self._connection.execute("DELETE FROM conversations WHERE owner=? AND session=?", (owner, session))
        query = (
            "DELETE FROM conversations WHERE owner=?1 AND session IS NULL AND response_id IN "
            "(SELECT response_id FROM responses WHERE owner=?1 AND session=?2)"
        )
        self._connection.execute(query, (owner, session))

    def _responses(self, owner: str, session: str) -> None:
        self._connection.execute("DELETE FROM responses WHERE owner=? AND session=?", (owner, session))

    def _replays(self, owner: str, session: str) -> None:
        query = "DELETE FROM replays WHERE owner=?1 AND (scope=?2 OR root=?2)"
        self._connection.execute(query, (owner, session))

    def _row(self, owner: str, session: str) -> None:
        self._connection.execute("DELETE FROM sessions WHERE owner=? AND id=?", (owner, session))

    def _release_slug(self, owner: str, response: str) -> None:
        """Let a slug go on without its response. A slug of the old schema learns its session before the response is gone."""
        query = (
            "UPDATE conversations SET response_id=NULL, session=coalesce(session, (SELECT session FROM responses "
            "WHERE owner=?1 AND response_id=?2)) WHERE owner=?1 AND response_id=?2"
        )
        self._connection.execute(query, (owner, response))

    def _delete_response(self, owner: str, response: str) -> None:
        self._connection.execute("DELETE FROM responses WHERE owner=? AND response_id=?", (owner, response))

    def _least_recently_used(self, owner: str, most: int) -> list[str]:
        """Return all responses of an owner but this many that were used last."""
        query = (
            "SELECT response_id FROM responses WHERE owner=? ORDER BY accessed_at DESC, rowid DESC LIMIT -1 OFFSET ?"
        )
        return [row[0] for row in self._connection.execute(query, (owner, most)).fetchall()]
