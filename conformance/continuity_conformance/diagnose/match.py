"""How well the symptoms of a run fit the signature of a defect, in units of evidence (natural logarithms of likelihood ratios).

A failure that the signature has too speaks for the defect: more if few defects show it, and more if step, expectation and kind of difference are the same. A
requirement that fails in the signature and passes in the run speaks against it. What is undecided on either side says nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from math import log
from typing import Final

from continuity_conformance.diagnose.symptoms import Place, Symptoms

_SHOWN: Final = 0.95
"""How often a defect shows where its signature says so."""
_SAME_PLACE: Final = 0.8
_OTHER_PLACE: Final = 0.35
_SAME_KIND: Final = 0.9
_OTHER_KIND: Final = 0.05
_SAME_DETAIL: Final = 2.0
_OTHER_DETAIL: Final = 0.5
_PASSES: Final = log(0.1)
_OWN_PASSES: Final = log(0.01)


class Knowledge:
    """The signatures, and how common each symptom is among them. `made_for`: the requirements that each defect was made to break."""

    def __init__(self, signatures: Mapping[str, Symptoms], made_for: Mapping[str, frozenset[str]]) -> None:
        self.signatures = signatures
        self.made_for = made_for

    @cached_property
    def _failing(self) -> Counter[str]:
        return Counter(identity for each in self.signatures.values() for identity in each.fails)

    @cached_property
    def _places(self) -> Counter[tuple[str, str, str, str]]:
        return Counter(
            where
            for each in self.signatures.values()
            for identity, places in each.fails.items()
            for where in {(identity, *place[:3]) for place in places}
        )

    @cached_property
    def _kinds(self) -> Counter[tuple[str, str]]:
        return Counter(
            (identity, kind)
            for each in self.signatures.values()
            for identity, places in each.fails.items()
            for kind in _kinds(places)
        )

    def likeness(self, identity: str, seen: tuple[Place, ...], defect: str) -> float:
        """How much this failing requirement speaks for the defect. Zero or less: it does not."""
        expected = self.signatures[defect].fails.get(identity)
        if expected is None:
            return 0.0
        rarity = log(_SHOWN * (len(self.signatures) + 2) / (self._failing[identity] + 1))
        return (
            rarity
            + self._place_likeness(identity, seen, expected)
            + self._kind_likeness(identity, seen, expected)
            + _detail_likeness(seen, expected)
        )

    def _place_likeness(self, identity: str, seen: Iterable[Place], expected: Iterable[Place]) -> float:
        ours, theirs = ({place[:3] for place in places} for places in (seen, expected))
        common = len(ours & theirs) / len(ours | theirs)
        rarest = min((self._places[(identity, *place)] for place in ours & theirs), default=0)
        agreement = log(_SAME_PLACE * (self._failing[identity] + 1) / rarest) if rarest else 0.0
        return common * agreement + (1 - common) * log(_OTHER_PLACE)

    def _kind_likeness(self, identity: str, seen: Iterable[Place], expected: Iterable[Place]) -> float:
        ours, theirs = _kinds(seen), _kinds(expected)
        common = len(ours & theirs) / len(ours | theirs)
        rarest = min((self._kinds[identity, kind] for kind in ours & theirs), default=0)
        agreement = log(_SAME_KIND * (self._failing[identity] + 1) / rarest) if rarest else 0.0
        return common * agreement + (1 - common) * log(_OTHER_KIND)

    def contrary(self, run: Symptoms, defect: str) -> list[str]:
        """The requirements that fail with this defect and pass in the run."""
        return [identity for identity in self.signatures[defect].fails if identity in run.passes]

    def against(self, run: Symptoms, defect: str) -> float:
        """How much the passes of the run speak against the defect: zero or less."""
        own = self.made_for.get(defect, frozenset())
        return sum(_OWN_PASSES if identity in own else _PASSES for identity in self.contrary(run, defect))


def _detail_likeness(seen: Iterable[Place], expected: Iterable[Place]) -> float:
    """Whether the same was there instead of what was expected, at the places that both have."""
    theirs = {place[:3]: place.detail for place in expected}
    compared = [theirs[place[:3]] == place.detail for place in seen if place[:3] in theirs]
    if not compared:
        return 0.0
    same = sum(compared) / len(compared)
    return same * log(_SAME_DETAIL) + (1 - same) * log(_OTHER_DETAIL)


def _kinds(places: Iterable[Place]) -> set[str]:
    return {kind for place in places for kind in place.kinds}
