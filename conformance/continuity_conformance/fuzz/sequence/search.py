"""The search for a counterexample: draw the sequences of a seed, play them, and make the first that fails short."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from continuity_conformance.fuzz.sequence.counterexample import Counterexample
from continuity_conformance.fuzz.sequence.machine import Drawn, Reach, draw
from continuity_conformance.fuzz.sequence.oracle import ALICE
from continuity_conformance.fuzz.sequence.player import batches, play, play_batch
from continuity_conformance.fuzz.sequence.shrink import failure, shrunk
from continuity_conformance.scenario.context import Stage

_OFFERED: Final = frozenset({"responses", "streaming", "sessions", "idempotency"})


def reach_of(stage: Stage, *, loses: bool = False, others: bool = False, restarts: bool = False) -> Reach:
    """What is drawn on this target, of what it offers and can be made to do."""
    target, controls = stage.target, stage.controls.available
    abilities = set(target.offers & _OFFERED)
    if loses:
        abilities |= {"lose"} | (controls & {"evict"})
    if loses and "compress" in controls and rotates(stage) and stage.controls.filling is None:
        abilities.add("compress")
    if restarts:
        abilities.add("restart")
    principals = (ALICE, "bob") if others else (ALICE,)
    return Reach(target.options, frozenset(abilities), principals, target.profile.slugs != "none")


def rotates(stage: Stage) -> bool:
    """Whether compressions belong to what can happen in a sequence, and would be seen."""
    return "compression" in stage.target.offers and stage.target.observed == "probe"


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search came to: how much was played, the shortest sequence that failed, and what could not be tested."""

    sequences: int
    steps: int
    counterexample: Counterexample | None = None
    untested: tuple[str, ...] = ()


async def search(stage: Stage, reach: Reach, *, examples: int, seed: int, shrinks: int) -> Searched:
    """Play so many sequences of a seed, up to the first that fails, and make that one short."""
    drawn = [draw(reach, seed, number) for number in range(examples)]
    cache = stage.target.profile.limits.responses if "restart" in reach.abilities else 0
    played, untested = list[Drawn](), list[str]()
    for batch in batches(drawn, cache):
        endings = await play_batch(stage, [one.steps for one in batch])
        for one, ending in zip(batch, endings, strict=True):
            played.append(one)
            untested += ending.untested
            failed = failure(one, ending)
            if failed is not None:
                return _searched(played, await shrunk(failed, reach, partial(play, stage), shrinks))
    return _searched(played, None, tuple(dict.fromkeys(untested)))


def _searched(played: list[Drawn], found: Counterexample | None, untested: tuple[str, ...] = ()) -> Searched:
    return Searched(len(played), sum(len(one.steps) for one in played), found, untested)
