"""Search for a counterexample: generate the sequences of a seed, play them, and shrink the first that fails."""

from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from continuity_conformance.core.failure import Inapplicable
from continuity_conformance.core.work import current_work
from continuity_conformance.fuzz.sequence.counterexample import Counterexample
from continuity_conformance.fuzz.sequence.generator import GeneratedSequence, SequenceScope, generate
from continuity_conformance.fuzz.sequence.oracle import ALICE
from continuity_conformance.fuzz.sequence.player import (
    SequenceResult,
    play,
    play_in_batches,
    play_side_by_side,
    within_cache,
)
from continuity_conformance.fuzz.sequence.shrink import failing_part, shrink
from continuity_conformance.scenario.context import Context

_OFFERS: Final = frozenset({"chat", "responses", "stored-responses", "streaming", "sessions", "idempotency"})
"""The offers that have operations in sequences."""


def scope_of(
    context: Context, *, losses: bool = False, second_principal: bool = False, restarts: bool = False
) -> SequenceScope:
    """Return what sequences may contain on this target, from its offers and its controls."""
    target, controls = context.target, context.controls.available
    abilities = set(target.offers & _OFFERS)
    if losses:
        abilities |= {"lose"} | (controls & {"evict"})
    if losses and "compress" in controls and shows_compressions(context) and context.controls.filling is None:
        abilities.add("compress")
    if restarts:
        abilities.add("restart")
    principals = (ALICE, "bob") if second_principal else (ALICE,)
    return SequenceScope(target.options, frozenset(abilities), principals, target.profile.slugs != "none")


def shows_compressions(context: Context) -> bool:
    """Whether the target compresses sessions and the probe model shows the result."""
    return "compression" in context.target.offers and context.target.observed == "probe"


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search: how much was played, the shrunk counterexample, and why something was not tested."""

    sequences: int
    steps: int
    counterexample: Counterexample | None = None
    untested: tuple[str, ...] = ()


async def search(context: Context, scope: SequenceScope, *, examples: int, seed: int, shrinks: int) -> SearchResult:
    """Play this many sequences of a seed, up to the first that fails, and shrink that one."""
    profile, restarts = context.target.profile, "restart" in scope.abilities
    cache_size = profile.shared_responses
    sequences = [within_cache(generate(scope, seed, number), cache_size) for number in range(examples)]
    played, untested = list[GeneratedSequence](), list[str]()
    playing = play_in_batches(context, sequences, cache_size) if restarts else play_side_by_side(context, sequences)
    current_work().plan(sum(len(sequence.steps) for sequence in sequences))
    result, failing = SequenceResult(), None
    async with aclosing(playing):
        async for sequence, result in playing:
            played.append(sequence)
            untested += result.untested
            failing = failing_part(sequence, result)
            if failing is not None or result.inapplicable:
                break
    if result.inapplicable:
        smaller = _without_evictions(scope, result.inapplicable)
        return await search(context, smaller, examples=examples, seed=seed, shrinks=shrinks)
    if failing is not None:
        return _result(played, await shrink(failing, scope, partial(play, context), shrinks))
    return _result(played, None, tuple(dict.fromkeys(untested)))


def _without_evictions(scope: SequenceScope, reason: str) -> SequenceScope:
    """The scope for a target whose control says that it never evicts anything. Raises Inapplicable if something else does not apply."""
    if "evict" not in scope.abilities:
        raise Inapplicable(reason)
    return replace(scope, abilities=scope.abilities - {"evict"})


def _result(
    played: list[GeneratedSequence], counterexample: Counterexample | None, untested: tuple[str, ...] = ()
) -> SearchResult:
    return SearchResult(len(played), sum(len(sequence.steps) for sequence in played), counterexample, untested)
