"""How much the name of a defect is to be trusted."""

from collections.abc import Sequence
from typing import Final

from continuity_conformance.diagnose.cover import Cover
from continuity_conformance.diagnose.match import Knowledge
from continuity_conformance.diagnose.symptoms import FailurePlace, Symptoms

_HIGH: Final = 0.85
_MEDIUM: Final = 0.65
_PLACES: Final = 2
"""At how many places at least a run must fail like the defect: one alone may be chance."""
_WHOLE: Final = 0.6
"""How much of the signature at least a run must show."""
MARGIN: Final = 1.5
"""A defect that gains at most so much less is an alternative."""
RIVALS: Final = 2
"""With more defects that explain almost as much, the name says little: only the evidence does."""


def confidence(cover: Cover, run: Symptoms, knowledge: Knowledge, defect: str, failed: Sequence[str]) -> str:
    """One of high, medium and low. `failed`: the requirements that the defect explains."""
    speaks_for = sum(cover.likeness[defect].get(identity, 0.0) for identity in failed)
    share = speaks_for / (speaks_for - knowledge.against(run, defect)) if speaks_for else 0.0
    rivals = len(cover.alternatives(defect, MARGIN))
    own = knowledge.made_for.get(defect, frozenset())
    same, places = _same_places(run, knowledge.signatures[defect], failed)
    if share < _MEDIUM or rivals > RIVALS or not own & run.fails.keys() or 2 * same < places:
        return "low"
    is_plain = same >= _PLACES and cover.shown(defect) >= _WHOLE
    return "high" if share >= _HIGH and not rivals and is_plain else "medium"


def _same_places(run: Symptoms, signature: Symptoms, failed: Sequence[str]) -> tuple[int, int]:
    """At how many places the failures are in scenarios in which the defect fails too, in the same way, and at how many they are.

    The step may be another one: a fault may show earlier or later. Of what the signature leaves undecided nothing is counted.
    """
    found = [
        any(_is_like(place, each) for each in signature.fails[identity])
        for identity in failed
        if identity in signature.fails
        for place in run.fails[identity]
    ]
    return sum(found), len(found)


def _is_like(ours: FailurePlace, theirs: FailurePlace) -> bool:
    is_there = (ours.scenario, ours.expectation) == (theirs.scenario, theirs.expectation)
    return is_there and not set(ours.kinds).isdisjoint(theirs.kinds)
