"""Checks of DURABLE: the target is killed several times during conversations."""

import asyncio
from typing import Final

from continuity_conformance.checks.registry import check, disturbing
from continuity_conformance.checks.support.kill_under_load import LoadClient, kill_under_load
from continuity_conformance.scenario.dialogue import Dialogue

_KILLS: Final = 3
_CLIENTS: Final = 4


@disturbing("kill")
@check
async def killed_under_load(dialogue: Dialogue) -> None:
    """DURABLE-04: after several kills under load, the model sees every acknowledged turn."""
    by_id = [LoadClient(dialogue, "chat", {"session": f"$id-{k}"}, f"$id-{k}") for k in range(_CLIENTS)]
    by_slug = [LoadClient(dialogue, "respond", {"conversation": f"$slug-{k}"}, f"$s-{k}") for k in range(_CLIENTS)]
    target = dialogue.context.target
    chats = "chat" in target.offers or not target.takes_slugs
    clients = [*(by_id if chats else []), *(by_slug if target.takes_slugs else [])]
    # On some targets a slug has to be created first: it exists before the first kill.
    await asyncio.gather(*(client.turn() for client in clients))
    await kill_under_load(dialogue, clients, _KILLS)
    await asyncio.gather(*(client.verify_history() for client in clients))
    await asyncio.gather(*(client.verify_history() for client in clients))
