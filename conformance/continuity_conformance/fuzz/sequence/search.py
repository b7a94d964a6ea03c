"""The search for a counterexample: draw the sequences of a seed, play them, and make the first that fails short."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from continuity_conformance.fuzz.sequence.counterexample import Counterexample
from continuity_conformance.fuzz.sequence.machine import Drawn, Reach, draw
from continuity_conformance.fuzz.sequence.oracle import ALICE
from continuity_conformance.fuzz.sequence.player import batches, play, play_batch
from continuity_conformance.fuzz.sequence.shrink import failure, shrunk
from continuity_conformance.scenario.context import Context

_OFFERED: Final = frozenset({"responses", "streaming", "sessions", "idempotency"})


def reach_of(context: Context, *, loses: bool = False, others: bool = False, restarts: bool = False) -> Reach:
    """What is drawn on this target, of what it offers and can be made to do."""
    target, controls = context.target, context.controls.available
    abilities = set(target.offers & _OFFERED)
    if loses:
        abilities |= {"lose"} | (controls & {"evict"})
    if loses and "compress" in controls and rotates(context) and context.controls.filling is None:
        abilities.add("compress")
    if restarts:
        abilities.add("restart")
    principals = (ALICE, "bob") if others else (ALICE,)
    return Reach(target.options, frozenset(abilities), principals, target.profile.slugs != "none")


def rotates(context: Context) -> bool:
    """Whether compressions belong to what can happen in a sequence, and would be seen."""
    return "compression" in context.target.offers and context.target.observed == "probe"


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search came to: how much was played, the shortest sequence that failed, and what could not be tested."""

    sequences: int
    steps: int
    counterexample: Counterexample | None = None
    untested: tuple[str, ...] = ()


async def search(context: Context, reach: Reach, *, examples: int, seed: int, shrinks: int) -> Searched:
    """Play so many sequences of a seed, up to the first that fails, and make that one short."""
    drawn = [draw(reach, seed, number) for number in range(examples)]
    cache = context.target.profile.limits.responses if "restart" in reach.abilities else 0
    played, untested = list[Drawn](), list[str]()
    for batch in batches(drawn, cache):
        endings = await play_batch(context, [one.steps for one in batch])
        for one, ending in zip(batch, endings, strict=True):
            played.append(one)
            untested += ending.untested
            failed = failure(one, ending)
            if failed is not None:
                return _searched(played, await shrunk(failed, reach, partial(play, context), shrinks))
    return _searched(played, None, tuple(dict.fromkeys(untested)))


def _searched(played: list[Drawn], found: Counterexample | None, untested: tuple[str, ...] = ()) -> Searched:
    return Searched(len(played), sum(len(one.steps) for one in played), found, untested)
