"""Checks of DURABLE: the target is killed again and again while conversations go on."""

import asyncio
from typing import Final

from continuity_conformance.checks.kill_under_load import Talker, kill_under_load
from continuity_conformance.checks.registry import check, disturbing
from continuity_conformance.scenario.dialogue import Dialogue

_KILLS: Final = 3
_TALKERS: Final = 4


@disturbing("kill")
@check
async def killed_under_load(dialogue: Dialogue) -> None:
    """DURABLE-04: many kills in a row under load; then everything that was acknowledged is looked for in what the model sees."""
    sessions = [Talker(dialogue, "chat", {"session": f"$id-{k}"}, f"$id-{k}") for k in range(_TALKERS)]
    slugs = [Talker(dialogue, "respond", {"conversation": f"$slug-{k}"}, f"$s-{k}") for k in range(_TALKERS)]
    talkers = [*sessions, *(slugs if dialogue.context.target.takes_slugs else [])]
    await asyncio.gather(
        *(talker.turn() for talker in talkers)
    )  # a slug that has to be made first is there before the first kill
    await kill_under_load(dialogue, talkers, _KILLS)
    await asyncio.gather(*(talker.check() for talker in talkers))
    await asyncio.gather(*(talker.check() for talker in talkers))
