"""Conversations that go on while the target is killed again and again, and what must be left of them in the end.

A talker says one thing after the other through one door, until a kill cuts a turn short. What was answered must be there afterwards, once and in
order; the turn that was cut short is there as a whole, or not at all.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.interventions import made_step

_TURNS_BEFORE_A_KILL: Final = 4


@dataclass(slots=True)
class Talker:
    """One conversation. `said` has its turns in order, those that nobody answered as `maybe`."""

    dialogue: Dialogue
    verb: str
    door: Mapping[str, object]
    session: str
    said: list[str] = field(default_factory=list)

    async def turn(self) -> bool:
        """Say the next thing; plain and streamed by turns. Tells whether it was answered."""
        label = self._next()
        expected = {"status": "any", "session": self.session}
        streamed = len(self.said) % 2 == 1
        exchange = await self._say(expected, "load", say=label, stream=streamed)
        self.said.append(label if exchange.answer.accepted else f"maybe {label}")
        return exchange.answer.accepted

    async def talk(self) -> None:
        """Go on until a turn is cut short."""
        while await self.turn():
            pass

    async def check(self) -> None:
        """DURABLE-04: no acknowledged turn lost, none twice, no fork; and none run again unasked."""
        label = self._next()
        ran = {said: 1 for said in self.said if not said.startswith("maybe ")}
        expected = {"session": self.session, "sees": [*self.said, label], "ran": ran}
        await self._say(expected, "after", say=label)
        self.said.append(label)

    async def _say(self, expected: Mapping[str, object], when: str, **params: object) -> Exchange:
        step = made_step(self.verb, {**params, **self.door}, expected)
        return (await self.dialogue.step(step, when))[-1]

    def _next(self) -> str:
        return f"{self.session.removeprefix('$')} says {len(self.said)}"


async def kill_under_load(dialogue: Dialogue, talkers: Sequence[Talker], kills: int) -> None:
    """Kill the target so many times while all of them talk, each time a few turns later."""
    for number in range(kills):
        talks = [asyncio.create_task(talker.talk()) for talker in talkers[1:]]
        try:
            # To its end, whatever becomes of a talk: a kill that goes on alone would start a server that nobody stops.
            await _kill_after(dialogue, talkers[0], _TURNS_BEFORE_A_KILL + number)
            await asyncio.gather(*talks)
        finally:
            await _no_more(talks)


async def _no_more(talks: Sequence[asyncio.Task[None]]) -> None:
    for talk in talks:
        talk.cancel()
    await asyncio.gather(*talks, return_exceptions=True)


async def _kill_after(dialogue: Dialogue, talker: Talker, turns: int) -> None:
    for _ in range(turns):
        await talker.turn()
    await dialogue.interventions.kill()
