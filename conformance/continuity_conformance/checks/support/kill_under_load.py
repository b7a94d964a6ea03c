"""Conversations that go on while the target is killed several times, and what must be left of them.

A client sends one turn after the other to one session, until a kill interrupts a turn. Every turn that was answered
must be there afterwards, once and in order. The interrupted turn is there completely, or not at all.
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
class LoadClient:
    """A client with one conversation.

    `selector` is the parameter that names the conversation, `session` the variable for its id. `labels` has the turns
    in order; one without an answer is a `maybe`.
    """

    dialogue: Dialogue
    verb: str
    selector: Mapping[str, object]
    session: str
    labels: list[str] = field(default_factory=list)

    async def turn(self) -> bool:
        """Send the next turn; every second one is streamed. True if it was answered."""
        label = self._next_label()
        told = self.dialogue.context.target.options["tells"] != "nothing"
        expected = {"status": "any", **({"session": self.session} if told else {})}
        streamed = len(self.labels) % 2 == 1
        exchange = await self._send(expected, "load", say=label, stream=streamed)
        self.labels.append(label if exchange.answer.accepted else f"maybe {label}")
        return exchange.answer.accepted

    async def send_until_interrupted(self) -> None:
        """Send turns until one is not answered."""
        while await self.turn():
            pass

    async def verify_history(self) -> None:
        """DURABLE-04: no acknowledged turn is lost or doubled, there is no fork, and no turn ran again unasked."""
        label = self._next_label()
        runs = {answered: 1 for answered in self.labels if not answered.startswith("maybe ")}
        expected = {"session": self.session, "sees": [*self.labels, label], "ran": runs}
        await self._send(expected, "after", say=label)
        self.labels.append(label)

    async def _send(self, expected: Mapping[str, object], phase: str, **params: object) -> Exchange:
        step = made_step(self.verb, {**params, **self.selector}, expected)
        return (await self.dialogue.step(step, phase))[-1]

    def _next_label(self) -> str:
        return f"{self.session.removeprefix('$')} says {len(self.labels)}"


async def kill_under_load(dialogue: Dialogue, clients: Sequence[LoadClient], kills: int) -> None:
    """Kill the target this many times while all clients send turns, each time a few turns later."""
    for number in range(kills):
        sending = [asyncio.create_task(client.send_until_interrupted()) for client in clients[1:]]
        try:
            # The kill runs to its end even if a client fails: one that is left alone would start a server that nobody stops.
            await _kill_after(dialogue, clients[0], _TURNS_BEFORE_A_KILL + number)
            await asyncio.gather(*sending)
        finally:
            await _cancel(sending)


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _kill_after(dialogue: Dialogue, client: LoadClient, turns: int) -> None:
    for _ in range(turns):
        await client.turn()
    await dialogue.interventions.kill()
