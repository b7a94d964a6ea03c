"""Find out how a target reads what the contract leaves open, with one short dialogue before the sequences."""

import asyncio
from dataclasses import dataclass

from continuity_conformance.scenario.context import Context
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange

_ANY = {"status": "any"}


@dataclass(frozen=True, slots=True)
class Readings:
    """`own_branches`: a branch has a session id of its own. `one_history`: chat continues a session of /v1/responses."""

    own_branches: bool = True
    one_history: bool = True


async def readings_of(context: Context) -> Readings:
    """Return the readings of this target. The first caller finds them out, and others wait for it."""
    lock = context.shared.setdefault("reading", asyncio.Lock())
    assert isinstance(lock, asyncio.Lock)
    async with lock:
        known = context.shared.get("readings")
        if not isinstance(known, Readings):
            known = context.shared["readings"] = await _observed(context)
        return known


async def _observed(context: Context) -> Readings:
    """A target that reveals no session ids has nothing to compare: no step can then depend on these readings."""
    target = context.target
    if "responses" not in target.offers or target.options["tells"] == "nothing":
        return Readings()
    dialogue = Dialogue(context, {})
    try:
        return Readings(await _own_branches(dialogue), "chat" not in target.offers or await _one_history(dialogue))
    finally:
        await dialogue.leave()


async def _own_branches(dialogue: Dialogue) -> bool:
    first = await dialogue.do("respond", _ANY, say="red")
    if first.reading is None or not first.reading.id:
        return True
    await dialogue.do("respond", _ANY, previous_response_id=first.reading.id, say="blue")
    branch = await dialogue.do("respond", _ANY, previous_response_id=first.reading.id, say="green")
    return not branch.answer.accepted or _sessions(dialogue, branch) != _sessions(dialogue, first)


async def _one_history(dialogue: Dialogue) -> bool:
    first = await dialogue.do("respond", _ANY, say="white")
    told = _sessions(dialogue, first)
    if not told:
        return True
    second = await dialogue.do("chat", _ANY, session=told[0], say="black")
    await dialogue.record.view(second)
    return list(second.seen or ()) != ["black"]


def _sessions(dialogue: Dialogue, exchange: Exchange) -> list[str]:
    return exchange.answer.fields(dialogue.context.target.header)
