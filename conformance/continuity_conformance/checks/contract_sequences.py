"""The checks of CONTRACT that are sequences: turns, branches, losses, rotations, deletions and restarts in any order, held against the oracle."""

from typing import Final

from continuity_conformance.checks.registry import check, disturbing, seeded
from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.fuzz.sequence.counterexample import Counterexample, as_steps
from continuity_conformance.fuzz.sequence.machine import Reach
from continuity_conformance.fuzz.sequence.search import reach_of, rotates, search
from continuity_conformance.scenario.dialogue import Dialogue

MANY: Final = 4
SOME: Final = 2
FEW: Final = 1
"""How many sequences are played for each of the budget's examples: many where many things can go wrong together."""
_SHRINKS: Final = 150
_SHRINKS_WITH_RESTARTS: Final = 40
"""How many shorter sequences are played at most."""


@seeded
@check
async def turns_in_any_order(dialogue: Dialogue) -> None:
    """CONTRACT-20: beginnings, continuations and branches."""
    await _search(dialogue, reach_of(dialogue.context), FEW)


@seeded
@check
async def losses_in_any_order(dialogue: Dialogue) -> None:
    """CONTRACT-21: ... with evictions, deletions, rotations, replays and turns that are not stored."""
    await _search(dialogue, reach_of(dialogue.context, loses=True), MANY)


@seeded
@check
async def principals_in_any_order(dialogue: Dialogue) -> None:
    """CONTRACT-22: ... of two principals, who also try each other's ids."""
    _needs("bob" in dialogue.context.target.profile.principals, "no key of a second principal")
    await _search(dialogue, reach_of(dialogue.context, loses=True, others=True), SOME)


@disturbing("restart")
@seeded
@check
async def restarts_in_any_order(dialogue: Dialogue) -> None:
    """CONTRACT-23: ... with a restart somewhere."""
    reach = reach_of(dialogue.context, loses=True, restarts=True)
    await _search(dialogue, reach, SOME, shrinks=_SHRINKS_WITH_RESTARTS)


def _needs(there: object, lacking: str) -> None:
    if not there:
        raise Untested(lacking)


async def _search(dialogue: Dialogue, reach: Reach, times: int, shrinks: int = _SHRINKS) -> None:
    """Search; what is found is played once more on the check's own dialogue, so that its transcript is the evidence."""
    budget = dialogue.context.budget
    searched = await search(
        dialogue.context, reach, examples=budget.examples * times, seed=budget.seed, shrinks=shrinks
    )
    dialogue.untested.extend(searched.untested)
    if "lose" in reach.abilities and rotates(dialogue.context) and dialogue.context.controls.filling is not None:
        dialogue.untested.append(
            "compressions are not among the sequences: filling the context for each takes too long"
        )
    if searched.counterexample is not None:
        await _tell(dialogue, searched.counterexample)


async def _tell(dialogue: Dialogue, found: Counterexample) -> None:
    path = found.save(dialogue.context.budget.folder, dialogue.context.target.options)
    try:
        await dialogue.play(as_steps(found.steps))
    except Unmet as unmet:
        raise unmet.with_sequence(found.key, str(path)) from None
    raise found.unmet.with_sequence(found.key, str(path))
