"""Defects of MIGRATE: upgrades that lose rows, run twice, stop half-way, or read old rows as something else."""

import itertools
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from continuity_server.defects.registry import defect
from continuity_server.rules import Rules
from continuity_server.rules.error import Case, Refusal
from continuity_server.rules.messages import Messages
from continuity_server.rules.migrate import R, Sharing

_PAUSE_SECONDS: Final = 0.5


@defect("migration-drops-tables", "The upgrade makes the tables anew, and what was in them is gone.")
class MigrationDropsTables(Rules):
    def kept(self, rows: Iterable[R]) -> Iterable[R]:  # noqa: ARG002 - that is the defect
        return ()


@defect("migration-skips-rows", "The upgrade keeps every second row.")
class MigrationSkipsRows(Rules):
    def kept(self, rows: Iterable[R]) -> Iterable[R]:
        return itertools.islice(rows, 0, None, 2)


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
class LegacyOrphanForks(Rules):
    def orphan(self) -> None:
        pass


@defect("legacy-orphan-is-500", "An old slug whose response is gone is a 500.")
class LegacyOrphanIs500(Rules):
    def orphan(self) -> None:
        raise Refusal(Case.INTERNAL, "The server has a defect.")


@defect(
    "legacy-slug-not-upgraded",
    "An old slug finds its session through its response for good, and loses it with that.",
    "hermes-agent PR 16607",
)
class LegacySlugNotUpgraded(Rules):
    def slug_session(self, session: str, *, old: bool) -> str | None:
        return None if old else session


@defect("old-writer-refused", "The new columns have no default: a writer of the old shape is refused.")
class OldWriterRefused(Rules):
    def old_writers_owner(self, first: str) -> str | None:  # noqa: ARG002 - that is the defect
        return None


@defect(
    "migration-race-second-process-dies", "A process keeps the database to itself: a second one that starts on it dies."
)
class MigrationRaceSecondProcessDies(Rules):
    def sharing(self) -> Sharing:
        return Sharing(exclusive=True, seconds=0)


@defect("migration-not-atomic", "Every step of the upgrade is committed by itself: killed in between, rows are lost.")
class MigrationNotAtomic(Rules):
    def transactions(self, steps: Sequence[R]) -> Iterable[Sequence[R]]:
        for step in steps:
            yield [step]
            time.sleep(_PAUSE_SECONDS)  # as on a slow disk, so that there is a between


@defect("migration-dies-of-unreadable-row", "An old row that is no JSON ends the upgrade, and the server with it.")
class MigrationDiesOfUnreadableRow(Rules):
    def unreadable_row(self) -> str:
        raise ValueError("an old row is no JSON")
