"""Turns at once: the model holds its answers until it has got all of them, so that they surely meet.

Without this, the first of many turns can be stored before the last has arrived, and a race is seen on a quick machine only.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from continuity_conformance.probe.script import Script
from continuity_conformance.scenario.context import Context, Observer
from continuity_conformance.scenario.observe import observer
from continuity_spec import Step

_MEETING_SECONDS: Final = 0.3
"""How long the model waits for the others after the first of them. A target that runs the turns of a session one after the other sends only one."""
_OF_THEIR_OWN: Final = frozenset({"model", "hang_up", "kill", "returns", "messages"})
"""Turns with one of these say themselves what the model does, or cannot be recognised by a label."""


def may_meet(step: Step) -> bool:
    """Whether the answer to a turn may be held until others have arrived."""
    return step.verb in {"chat", "respond"} and not step.during and not _OF_THEIR_OWN & set(step.params)


@asynccontextmanager
async def meeting(context: Context, marks: Sequence[str]) -> AsyncIterator[None]:
    """Hold the answers to the turns with these marks until all have arrived, or a moment has passed since the first one."""
    if context.target.observed != "probe" or len(marks) < 2:  # noqa: PLR2004 - one turn meets nobody
        yield
        return
    probe = observer(context)
    for mark in marks:
        await probe.script(mark, Script(held=True))
    releasing = asyncio.create_task(_release_in_time(probe, marks))
    try:
        yield
    finally:
        releasing.cancel()
        await _release(probe, marks)
        for mark in marks:
            await probe.script(mark, Script())


async def _release_in_time(probe: Observer, marks: Sequence[str]) -> None:
    arrivals = [asyncio.create_task(_arrival(probe, mark)) for mark in marks]
    try:
        await asyncio.wait(arrivals, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait(arrivals, timeout=_MEETING_SECONDS)
        await _release(probe, marks)
    finally:
        for arrival in arrivals:
            arrival.cancel()


async def _arrival(probe: Observer, mark: str) -> None:
    await probe.arrived(mark)


async def _release(probe: Observer, marks: Iterable[str]) -> None:
    for mark in marks:
        await probe.release(mark)
