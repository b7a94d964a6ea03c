"""Kills under load: whatever becomes of a conversation, the kill comes to its end."""

import asyncio
from types import SimpleNamespace

import pytest

from continuity_conformance.checks.support.kill_under_load import LoadClient, kill_under_load
from continuity_conformance.core.failure import Unmet


class Killing:
    """In the place of the interventions: a kill that takes a while."""

    def __init__(self):
        self.began = asyncio.Event()
        self.ended = False

    async def kill(self):
        self.began.set()
        await asyncio.sleep(0.05)
        self.ended = True


class Silent(LoadClient):
    async def turn(self):
        return True


class Failing(LoadClient):
    """Its turn is wrong while the target is being killed."""

    async def turn(self):
        await self.dialogue.interventions.began.wait()
        raise Unmet("red", "blue")


def test_a_kill_ends_although_a_conversation_fails_meanwhile():
    killing = Killing()
    dialogue = SimpleNamespace(interventions=killing)
    clients = [kind(dialogue, "chat", {}, f"$s-{kind.__name__}") for kind in (Silent, Failing)]

    with pytest.raises(Unmet):
        asyncio.run(kill_under_load(dialogue, clients, kills=1))

    assert killing.ended
