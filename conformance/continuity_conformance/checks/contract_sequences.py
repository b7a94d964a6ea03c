"""The checks of CONTRACT with sequences: turns, branches, losses, rotations, deletions and restarts in any order."""

from dataclasses import replace
from typing import Final

from continuity_conformance.checks.registry import check, disturbing, in_sequences, on, second_principal
from continuity_conformance.core.failure import Unmet
from continuity_conformance.fuzz.sequence.counterexample import Counterexample, parsed_steps
from continuity_conformance.fuzz.sequence.generator import SequenceScope
from continuity_conformance.fuzz.sequence.readings import readings_of
from continuity_conformance.fuzz.sequence.search import scope_of, search, shows_compressions
from continuity_conformance.scenario.dialogue import Dialogue

MANY: Final = 4
SOME: Final = 2
FEW: Final = 1
"""Sequences for each example of the budget: many where many things can go wrong together."""
_SHRINKS: Final = 150
_SHRINKS_WITH_RESTARTS: Final = 40
"""How many shorter sequences are played at most."""


@in_sequences
@check
async def turns_in_any_order(dialogue: Dialogue) -> None:
    """CONTRACT-20: new conversations, continuations and branches in any order."""
    await _search(dialogue, scope_of(dialogue.context), FEW)


@in_sequences
@check
async def losses_in_any_order(dialogue: Dialogue) -> None:
    """CONTRACT-21: turns, evictions, deletions, rotations, replays and turns that are not stored, in any order."""
    await _search(dialogue, scope_of(dialogue.context, losses=True), MANY)


@on(second_principal)
@in_sequences
@check
async def principals_in_any_order(dialogue: Dialogue) -> None:
    """CONTRACT-22: turns and losses of two principals, who also try each other's ids, in any order."""
    await _search(dialogue, scope_of(dialogue.context, losses=True, second_principal=True), SOME)


@disturbing("restart")
@in_sequences
@check
async def restarts_in_any_order(dialogue: Dialogue) -> None:
    """CONTRACT-23: turns and losses in any order, with one restart."""
    scope = scope_of(dialogue.context, losses=True, restarts=True)
    await _search(dialogue, scope, SOME, shrinks=_SHRINKS_WITH_RESTARTS)


async def _search(
    dialogue: Dialogue, scope: SequenceScope, sequences_per_example: int, shrinks: int = _SHRINKS
) -> None:
    context, budget = dialogue.context, dialogue.context.budget
    readings = await readings_of(context)
    scope = replace(scope, own_branches=readings.own_branches, one_history=readings.one_history)
    examples = budget.examples * sequences_per_example
    result = await search(context, scope, examples=examples, seed=budget.seed, shrinks=shrinks)
    dialogue.untested.extend(result.untested)
    if "lose" in scope.abilities and shows_compressions(context) and context.controls.filling is not None:
        dialogue.untested.append("the sequences have no compressions: filling the context for each takes too long")
    if result.counterexample is not None:
        await _fail(dialogue, result.counterexample)


async def _fail(dialogue: Dialogue, counterexample: Counterexample) -> None:
    """Save the counterexample and play it on the dialogue of the check, so that its transcript is the evidence."""
    path = counterexample.save(dialogue.context.budget.folder, dialogue.context.target.options)
    try:
        async with dialogue.context.cache.lease(len(counterexample.steps)):
            await dialogue.play(parsed_steps(counterexample.steps))
    except Unmet as unmet:
        raise unmet.with_sequence(counterexample.yaml, str(path)) from None
    raise counterexample.unmet.with_sequence(counterexample.yaml, str(path))
