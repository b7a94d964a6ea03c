"""Checks of CONCUR: a session whose turn runs, while many others are used."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from typing import Final

from continuity_conformance.checks.long_history import named_conversation
from continuity_conformance.checks.registry import check
from continuity_conformance.core.failure import Inapplicable, Untested
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.interventions import made_step

_OTHERS: Final = 70
"""More than a small table of locks holds."""
_OWN: Final = 4
"""The turns of the session itself."""
_SECONDS: Final = 10.0
"""How long the others may take. A slow target gets fewer of them."""
_ARRIVAL_WAIT: Final = 0.3
_REJECTED: Final = 409
_ANY: Final[Mapping[str, object]] = {"status": [200, _REJECTED, 500]}
"""What CONCUR-01 says about these turns is not asked here."""
_SECOND: Final[Mapping[str, object]] = {
    "by turns": {"serialize": {"sees": ["red", "blue", "green"]}, "reject": {"status": 409}}
}
_AFTER: Final[Mapping[str, object]] = {
    "by turns": {"serialize": {"sees": ["red", "blue", "green", "white"]}, "reject": {"sees": ["red", "blue", "white"]}}
}


@check
async def busy_session_among_many(dialogue: Dialogue) -> None:
    """CONCUR-07: while the model holds a turn, many other sessions have one each. A second turn of the busy session waits all the same, or is rejected."""
    verb, place = _place(dialogue)
    await _require_waiting(dialogue, verb, *place)
    await dialogue.do(verb, {"sees": ["red"]}, say="red", **place)
    async with dialogue.holding(verb, {"sees": ["red", "blue"]}, say="blue", **place):
        await _use_others(dialogue, verb, *place)
        second = asyncio.create_task(dialogue.do(verb, _SECOND, say="green", waits=True, **place))
        await asyncio.wait({second}, timeout=_ARRIVAL_WAIT)
    await second
    await dialogue.do(verb, _AFTER, say="white", **place)


def _place(dialogue: Dialogue) -> tuple[str, dict[str, object]]:
    target = dialogue.context.target
    if "chat" not in target.offers and not target.takes_slugs:
        raise Inapplicable("no client can name a session of the target, so two turns of one cannot be sent at once")
    return named_conversation(dialogue)


async def _require_waiting(dialogue: Dialogue, verb: str, selector: str) -> None:
    """Where turns of one session overlap even if no other is used, CONCUR-01 fails, and nothing can be said about a full table of locks."""
    place: dict[str, object] = {selector: "$alone"}
    await dialogue.do(verb, None, say="grey", **place)
    async with dialogue.holding(verb, _ANY, say="black", **place):
        second = asyncio.create_task(dialogue.do(verb, _ANY, say="gold", waits=True, **place))
        await asyncio.wait({second}, timeout=_ARRIVAL_WAIT)
        answered = second.done()
    if (await second).answer.status != _REJECTED and answered:
        raise Untested(
            "a second turn neither waits nor is rejected while no other session is used: blocked by CONCUR-01"
        )


async def _use_others(dialogue: Dialogue, verb: str, selector: str) -> None:
    """Have one turn in each of many other sessions: no more than the target's cache of responses holds, or than there is time for."""
    limits = dialogue.context.target.profile.limits
    room = limits.responses - _OWN if verb == "respond" and limits.responses else _OTHERS
    until = time.monotonic() + min(_SECONDS, limits.turn_seconds / 2)
    numbers = iter(range(min(_OTHERS, room)))
    clients = range(max(1, limits.at_once - 1))
    await asyncio.gather(*(_client(dialogue, verb, selector, numbers, until) for _ in clients))


async def _client(dialogue: Dialogue, verb: str, selector: str, numbers: Iterator[int], until: float) -> None:
    """Begin one session after the other. All clients take their numbers from the same place."""
    for number in numbers:
        turn = made_step(verb, {"say": f"other {number}", selector: f"$other-{number}"})
        await dialogue.step(turn, "2.1")
        if time.monotonic() > until:
            return
