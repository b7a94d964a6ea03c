"""Faults that the control API can switch on. The server takes the privileges from itself, so PostgreSQL refuses the statements, in all processes at once."""

from typing import Final

from continuity_server.store.disk import StoreUnwritableError
from continuity_server.store.faults import Fault
from continuity_server.store.postgres.database import FAILED, Database
from continuity_server.store.postgres.waiting import waited

_CONTENT: Final = {
    "messages": "owner, session, epoch, seq",
    "responses": "response_id, accessed_at, owner, session, epoch, upto, born",
    "replays": "owner, scope, key, fingerprint, root, header",
}
"""The tables with what was said, and the columns that stay readable."""
_WRITTEN: Final = "messages, responses, replays, sessions, conversations, conversation_objects"
_LINEAGE: Final = "sessions, conversations"

_ON: Final = {
    Fault.READ: [
        statement
        for table, columns in _CONTENT.items()
        for statement in (
            f"REVOKE SELECT ON {table} FROM CURRENT_USER",  # noqa: S608 - the names are ours
            f"GRANT SELECT ({columns}) ON {table} TO CURRENT_USER",
        )
    ],
    Fault.WRITE: [f"REVOKE INSERT, UPDATE, DELETE ON {_WRITTEN} FROM CURRENT_USER"],
    Fault.LINEAGE: [f"REVOKE SELECT ON {_LINEAGE} FROM CURRENT_USER"],  # noqa: S608 - as above
}
_OFF: Final = {
    Fault.READ: [f"GRANT SELECT ON {table} TO CURRENT_USER" for table in _CONTENT],
    Fault.WRITE: [f"GRANT INSERT, UPDATE, DELETE ON {_WRITTEN} TO CURRENT_USER"],
    Fault.LINEAGE: [f"GRANT SELECT ON {_LINEAGE} TO CURRENT_USER"],
}
WORKS: Final = (
    "SELECT bool_and(has_table_privilege(name, 'SELECT') AND has_table_privilege(name, 'INSERT') "  # noqa: S608 - our names
    f"AND has_table_privilege(name, 'UPDATE') AND has_table_privilege(name, 'DELETE')) FROM unnest('{{{_WRITTEN}}}'::text[]) AS name"
)
"""Whether no fault is on."""
ALL_OFF: Final = [statement for statements in _OFF.values() for statement in statements]
"""What a start does, so that no fault outlives it."""


class RevokedPrivileges:
    """The faults of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def set(self, fault: Fault, *, on: bool) -> None:
        """Switch a fault on or off. Raises StoreUnwritableError for a superuser, from whom PostgreSQL takes nothing."""
        waited(self._set((_ON if on else _OFF)[fault]))

    async def _set(self, statements: list[str]) -> None:
        superuser = await self._database.fetch("SELECT usesuper FROM pg_user WHERE usename=current_user")
        if superuser and superuser[0][0]:
            raise StoreUnwritableError
        try:
            for statement in statements:
                await self._database.execute(statement)
        except FAILED as error:
            raise StoreUnwritableError from error
