"""Defects of MIGRATE: upgrades that lose rows, run twice, stop half-way, or read old rows as something else."""

import sqlite3
import time
from collections.abc import Collection, Mapping
from typing import Any, Final

from continuity_server.defects.registry import defect
from continuity_server.rules import Rules
from continuity_server.rules.error import Case, Refusal
from continuity_server.rules.messages import Messages
from continuity_server.store.backfill import Backfill, OldResponse
from continuity_server.store.records import StoredSlug, Write
from continuity_server.store.schema import statements
from continuity_server.store.store import Store
from continuity_server.store.upgrade import Row, Upgrade, transaction
from continuity_server.turn.resolve import Resolver
from continuity_server.turn.types import Destination, TurnRequest

_PAUSE_SECONDS: Final = 0.5


@defect("migration-drops-tables", "The upgrade makes the tables anew, and what was in them is gone.")
class MigrationDropsTables(Upgrade):
    def _old_rows(self, connection: sqlite3.Connection, table: str) -> list[Row]:  # noqa: ARG002 - that is the defect
        return []


@defect("migration-skips-rows", "The upgrade keeps every second row.")
class MigrationSkipsRows(Upgrade):
    def _old_rows(self, connection: sqlite3.Connection, table: str) -> list[Row]:
        return super()._old_rows(connection, table)[::2]


@defect(
    "migration-runs-every-start", "Every start upgrades the database once more, and drops what only the new one has."
)
class MigrationRunsEveryStart(Rules):
    def is_old(self, columns: Collection[str]) -> bool:
        return bool(columns)


@defect(
    "legacy-session-ignored", "An old response's session is ignored: its slug goes on in another.", "hermes-agent#16517"
)
class LegacySessionIgnored(Rules):
    def legacy_session(self, data: Mapping[str, Any]) -> str | None:  # noqa: ARG002 - that is the defect
        return None


@defect("legacy-history-ignored", "An old response's history is ignored: its session starts empty.")
class LegacyHistoryIgnored(Rules):
    def legacy_history(self, data: Mapping[str, Any]) -> Messages:  # noqa: ARG002 - that is the defect
        return []


@defect(
    "legacy-orphan-forks",
    "An old slug whose response is gone starts a new session without a word.",
)
class LegacyOrphanForks(Resolver):
    def _slug(self, request: TurnRequest, slug: str) -> Destination:
        stored = self._store.slug(request.principal, slug)
        orphan = stored is not None and stored.session is None
        return self._new_slug(request, slug) if orphan else super()._slug(request, slug)


@defect("legacy-orphan-is-500", "An old slug whose response is gone is a 500.")
class LegacyOrphanIs500(Resolver):
    def _slug_session(self, slug: StoredSlug) -> str:
        if slug.session is None:
            raise Refusal(Case.INTERNAL, "The server has a defect.")
        return super()._slug_session(slug)


class _SlugsLeft(Backfill):
    """Backfill that leaves old slugs as they are: they know their session only through their response."""

    def _bind_slug(self, connection: sqlite3.Connection, old: OldResponse) -> None:
        pass


@defect(
    "legacy-slug-not-upgraded",
    "An old slug finds its session through its response for good, and loses it with that.",
    "hermes-agent PR 16607",
    also=(_SlugsLeft,),
)
class LegacySlugNotUpgraded(Store):
    def _apply(self, write: Write) -> None:
        key = (write.owner, write.slug.name if write.slug else None)
        query = "SELECT 1 FROM conversations WHERE owner=? AND name=? AND session IS NULL"
        old = self._connection.execute(query, key).fetchone()
        super()._apply(write)
        if old:
            self._connection.execute("UPDATE conversations SET session=NULL WHERE owner=? AND name=?", key)


@defect("old-writer-refused", "The new columns have no default: a writer of the old shape is refused.")
class OldWriterRefused(Upgrade):
    def _create_tables(self, connection: sqlite3.Connection) -> None:
        for statement in statements("NULL"):
            connection.execute(statement)


@defect(
    "migration-race-second-process-dies", "A process keeps the database to itself: a second one that starts on it dies."
)
class MigrationRaceSecondProcessDies(Upgrade):
    def _share(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA busy_timeout=0")
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")


@defect("migration-not-atomic", "Every step of the upgrade is committed by itself: killed in between, rows are lost.")
class MigrationNotAtomic(Upgrade):
    def _run(self, connection: sqlite3.Connection) -> None:
        for step in self._steps():
            with transaction(connection):
                step(connection)
            time.sleep(_PAUSE_SECONDS)  # as on a slow disk, so that there is a between


@defect("migration-dies-of-unreadable-row", "An old row that is no JSON ends the upgrade, and the server with it.")
class MigrationDiesOfUnreadableRow(Rules):
    def row_data(self, data: object) -> Mapping[str, Any] | None:
        value = super().row_data(data)
        if value is None:
            raise ValueError("an old row is no JSON")
        return value
