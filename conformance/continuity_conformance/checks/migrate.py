"""Checks of MIGRATE: an old server that writes to the same database, and a migration that is killed."""

import asyncio
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from continuity_conformance.checks.registry import check, disturbing
from continuity_conformance.core.failure import Unmet
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.interventions import made_step
from continuity_conformance.target.old_database import write_to

_MANY_ROWS: Final = 1000
_TURNS_AFTER: Final = 5
"""Free places in the cache of the target, for the turns after a migration."""
_KILL_AFTER: Final = (0.0, 0.1, 0.3, 0.7)
"""When to kill, after the target first touched the old database: a fraction of the time that a start takes."""


@disturbing("legacy")
@check
async def old_writer(dialogue: Dialogue) -> None:
    """MIGRATE-06: a row that an old server writes into the new database counts like any old row."""
    old = {"conversation": "$old", "response": "$r1", "session": "$s1", "turns": ["red"]}
    aside = {"response": "$aside", "session": "$s1", "turns": ["pink"]}
    await dialogue.interventions.do(made_step("legacy", {"rows": [old, aside]}))
    further = {"conversation": "$old", "response": "$r2", "session": "$s1", "turns": ["red", "grey"]}
    await _old_writer_adds(dialogue, further, {"conversation": "$torn", "response": "$r3", "data": "{"})
    await dialogue.do("respond", {"session": "$s1", "sees": ["red", "grey", "blue"]}, conversation="$old", say="blue")
    beside = {"response": "$beside", "sees": ["pink", "brown"]}
    await dialogue.do("respond", beside, previous_response_id="$aside", say="brown")
    await _old_writer_adds(dialogue, {"response": "$r4", "session": "$s2", "turns": ["green"]})
    await dialogue.do("get", {"body": {"id": "$r4"}}, response="$r4")
    later = {"sees": ["pink", "brown", "purple"]}
    await dialogue.do("respond", later, previous_response_id="$beside", say="purple")
    labels = ["red", "grey", "blue", "black"]
    await dialogue.do("chat", {"session": "$s1", "sees": labels}, session="$s1", say="black")
    await _old_writer_adds(dialogue, {"conversation": "$old", "response": "$r4"})
    await _deleted_beside_an_old_writer(dialogue)
    await dialogue.do("respond", {"session": "$s2", "sees": ["green", "white"]}, conversation="$old", say="white")
    await _compressed_beside_an_old_writer(dialogue)
    await _old_writer_adds(dialogue, {"conversation": "$new", "response": "$r5", "session": "$s3", "turns": ["yellow"]})
    newest = {"session": "$s3", "response": "$ours", "sees": ["yellow", "gold"]}
    await dialogue.do("respond", newest, conversation="$new", say="gold")
    await _evicted_beside_an_old_writer(dialogue)


async def _old_writer_adds(dialogue: Dialogue, *rows: Mapping[str, object]) -> None:
    """Write rows like an old server, while the target uses the database."""
    old_rows = [dialogue.interventions.old_row(row) for row in rows]
    dialogue.record.log.intervention(
        "", "an old writer adds a row to the new database", "in the statements of the old schema"
    )
    with _database_errors_are_failures():
        await asyncio.to_thread(write_to, dialogue.context.server.database, old_rows)


async def _deleted_beside_an_old_writer(dialogue: Dialogue) -> None:
    """Delete a session, where that is offered: what an old writer just added to it goes too, and nothing else."""
    if "sessions" not in dialogue.context.target.offers:
        return
    await _old_writer_adds(dialogue, {"response": "$late", "session": "$s1", "turns": ["violet"]})
    await dialogue.do("delete", {"body": {"deleted": True}}, session="$s1")
    await dialogue.do("chat", {"session": "$s1", "sees": ["orange"]}, session="$s1", say="orange")


async def _compressed_beside_an_old_writer(dialogue: Dialogue) -> None:
    """Compress another session, and let bob use the id that the old writer names next, where the target offers that."""
    offers = dialogue.context.target.offers
    compresses = "compression" in offers and "compress" in dialogue.context.controls.available
    if compresses:
        await dialogue.do("respond", {"status": "2xx"}, conversation="$old", say="silver", compress=True)
    if "tenants" in offers:
        await dialogue.do("chat", {"session": "$s3"}, **{"as": "bob"}, session="$s3", say="his")
    if "tenants" in offers and compresses:
        await dialogue.do("chat", {"status": "2xx"}, **{"as": "bob"}, session="$s3", say="his too", compress=True)


async def _evicted_beside_an_old_writer(dialogue: Dialogue) -> None:
    """Evict a response, where the target can: a slug that an old writer pointed at it continues, once it has a new turn."""
    if "evict" not in dialogue.context.controls.available:
        return
    await _old_writer_adds(dialogue, {"conversation": "$new", "response": "$ours"})
    labels = ["yellow", "gold", "teal"]
    await dialogue.do("respond", {"session": "$s3", "sees": labels}, conversation="$new", say="teal")
    await dialogue.interventions.do(made_step("evict", {"response": "$ours"}))
    await dialogue.do("respond", {"session": "$s3", "sees": [*labels, "lime"]}, conversation="$new", say="lime")


@disturbing("legacy", "kill")
@check
async def migration_killed(dialogue: Dialogue) -> None:
    """MIGRATE-08: a migration that is killed completes at the next start, with every row."""
    kept = _row_count(dialogue)
    rows: list[Mapping[str, object]] = [
        {"conversation": f"$slug-{k}", "response": f"$r-{k}", "session": f"$s-{k}", "turns": ["red"]}
        for k in range(kept)
    ]
    # Slugs without a response need no place in the cache, and make the migration long enough to be killed in the middle.
    orphans = [{"conversation": f"$orphan-{k}", "response": f"$gone-{k}"} for k in range(_MANY_ROWS - kept)]
    rows[kept // 2 : kept // 2] = orphans
    for kill_after in _KILL_AFTER:
        await dialogue.interventions.start_and_kill(rows, kill_after)
        for k in (0, kept // 2, kept - 1):
            expected = {"session": f"$s-{k}", "sees": ["red", f"blue {kill_after}"]}
            await dialogue.do("respond", expected, conversation=f"$slug-{k}", say=f"blue {kill_after}")


def _row_count(dialogue: Dialogue) -> int:
    """Return how many responses the old database has: the target may evict those that its cache cannot hold."""
    limit = dialogue.context.target.profile.limits.responses
    return min(_MANY_ROWS, limit - _TURNS_AFTER) if limit else _MANY_ROWS


@contextmanager
def _database_errors_are_failures() -> Iterator[None]:
    """A statement of the old schema that the new schema refuses is a failure of the target."""
    try:
        yield
    except sqlite3.Error as error:
        raise Unmet(
            "statements of the old schema accepted", str(error), expectation="writer", step="an old writer"
        ) from None
