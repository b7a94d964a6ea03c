"""Checks of MIGRATE: a migration that is killed."""

from collections.abc import Mapping
from typing import Final

from continuity_conformance.checks.registry import check, disturbing
from continuity_conformance.scenario.dialogue import Dialogue

_MANY_ROWS: Final = 1000
_TURNS_AFTER: Final = 5
"""Free places in the cache of the target, for the turns after a migration."""
_KILL_AFTER: Final = (0.0, 0.1, 0.3, 0.7)
"""When to kill, after the target first touched the old database: a fraction of the time that a start takes."""


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
