"""Turns without any kill. A kind of conversation that is wrong even then is reported as that, and takes no part in the kills: they would be blamed for it."""

import asyncio
import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from continuity_conformance.torture.audit.checker import audit
from continuity_conformance.torture.audit.history import FoundViolation, Violation
from continuity_conformance.torture.client import Client
from continuity_conformance.torture.conversation import Conversation, ConversationKind, shared_kinds
from continuity_conformance.torture.read_back import read_back
from continuity_conformance.torture.slots import Names, Slot
from continuity_conformance.torture.state import CampaignState

_TURNS: Final = 4
Wrong = tuple[FoundViolation, Conversation]


async def wrong_when_calm(state: CampaignState, kinds: Sequence[ConversationKind]) -> dict[ConversationKind, Wrong]:
    """The kinds in which something is wrong without a kill, each with the first violation."""
    calm = replace(state, compresses=False)
    found = await asyncio.gather(*(_try(calm, kind, number) for number, kind in enumerate(kinds)))
    return {kind: wrong for kind, wrong in zip(kinds, found, strict=True) if wrong is not None}


async def _try(state: CampaignState, kind: ConversationKind, number: int) -> Wrong | None:
    clients = 2 if kind in shared_kinds(state.context) else 1
    chance = random.Random(number)  # noqa: S311 - nothing depends on it
    slot = Slot((kind,), "alice", Names(state.context, ["alice"]), itertools.count(-number), chance)
    conversation = slot.current()
    await asyncio.gather(*(_turns(Client(state, slot, chance), conversation) for _ in range(clients)))
    return first_wrong(state, conversation)


async def _turns(client: Client, conversation: Conversation) -> None:
    for _ in range(_TURNS):
        if not await client.turn(conversation):
            return
    await read_back(client.state, conversation)


def first_wrong(state: CampaignState, conversation: Conversation) -> Wrong | None:
    """The first violation in a conversation that no kill disturbed; None if there is none."""
    found = audit(conversation.history(), state.probe.asked, state.owners)
    if not conversation.answered and not found:
        nothing = FoundViolation(Violation.STUCK, conversation.name, "no turn was answered", state.journal.now)
        found = [nothing]
    return (replace(found[0], calm=True), conversation) if found else None
