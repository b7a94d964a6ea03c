"""How well the symptoms of a run fit the signature of a defect, in units of evidence (natural logarithms of likelihood ratios).

A failure that the signature has too speaks for the defect: more if few defects show it, and more if step, expectation and kind of difference are the same. A
requirement that fails in the signature and passes in the run speaks against it. What is undecided on either side says nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from math import log
from typing import Any, Final

from continuity_conformance.diagnose.symptoms import FailurePlace, Symptoms
from continuity_conformance.diagnose.unknown import TELLING

_SHOWN: Final = 0.95
"""How often a defect shows where its signature says so."""
_SAME_PLACE: Final = 0.8
_OTHER_PLACE: Final = 0.35
_OTHER_PLACE_TELLING: Final = 0.5
"""A kind of difference that means the same everywhere may show in other scenarios of a server that is built in another way."""
_NO_PLACE: Final = 0.03
"""Not one place in common: any other kind of difference then says little."""
_SAME_KIND: Final = 0.9
_OTHER_KIND: Final = 0.05
_SAME_DETAIL: Final = 2.0
_OTHER_DETAIL: Final = 0.3
_OTHER_FINDING: Final = 0.02
_SAME_WORDS: Final = 0.6
_MORE: Final = 0.7
_CLAIM: Final = "claim"
_HEADERS: Final = "headers"
_DOUBLED: Final = "doubled"
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

    def likeness(self, run: Symptoms, identity: str, defect: str) -> float:
        """How much this failing requirement of a run speaks for the defect. Zero or less: it does not."""
        return self._likeness(identity, run.fails[identity], self._expected(run, identity, defect))

    def _expected(self, run: Symptoms, identity: str, defect: str) -> tuple[FailurePlace, ...]:
        """Where the signature fails, without what the run did not decide: scenarios that were not played, and steps behind the one at which a scenario ended."""
        silent = run.silent.get(identity, frozenset())
        places, seen = self.signatures[defect].fails.get(identity, ()), run.fails.get(identity, ())
        return tuple(place for place in places if place.scenario not in silent and not _is_behind(place, seen))

    def _likeness(self, identity: str, seen: tuple[FailurePlace, ...], expected: tuple[FailurePlace, ...]) -> float:
        if not _kinds(seen) & _kinds(expected) or _is_another_doubling(seen, expected):
            return 0.0
        rarity = log(_SHOWN * (len(self.signatures) + 2) / (self._failing[identity] + 1))
        return (
            rarity
            + self._place_likeness(identity, seen, expected)
            + self._kind_likeness(identity, seen, expected)
            + _detail_likeness(seen, expected)
        )

    def _place_likeness(self, identity: str, seen: Iterable[FailurePlace], expected: Iterable[FailurePlace]) -> float:
        ours, theirs = ({place[:3] for place in places} for places in (seen, expected))
        rarest = min((self._places[(identity, *place)] for place in ours & theirs), default=0)
        agreement = log(_SAME_PLACE * (self._failing[identity] + 1) / rarest) if rarest else 0.0
        telling = _kinds(seen) & _kinds(expected) & TELLING
        disagreement = _OTHER_PLACE if rarest or telling else _NO_PLACE
        return _weighed(ours, theirs, agreement, log(_OTHER_PLACE_TELLING if telling else disagreement))

    def _kind_likeness(self, identity: str, seen: Iterable[FailurePlace], expected: Iterable[FailurePlace]) -> float:
        ours, theirs = _kinds(seen), _kinds(expected)
        rarest = min((self._kinds[identity, kind] for kind in ours & theirs), default=0)
        agreement = log(_SAME_KIND * (self._failing[identity] + 1) / rarest) if rarest else 0.0
        return _weighed(ours, theirs, agreement, log(_OTHER_KIND))

    def whole(self, run: Symptoms, defect: str) -> float:
        """What would speak for the defect if the run showed all of its signature that the run decided."""
        decided = run.fails.keys() | set(self.contrary(run, defect))
        return sum(
            self._likeness(identity, expected, expected)
            for identity in self.signatures[defect].fails
            if identity in decided
            if (expected := self._expected(run, identity, defect))
        )

    def decides(self, defect: str, identity: str) -> bool:
        """Whether the signature of the defect says anything about a requirement."""
        signature = self.signatures[defect]
        return identity in signature.fails or identity in signature.passes

    def made_to_fail(self, identity: str, seen: Iterable[FailurePlace], scenario: str) -> str | None:
        """The defect that was made to break a requirement and fails in the same way in a scenario; of several, the one that fails at the fewest places."""
        here = [place for place in seen if place.scenario == scenario]
        found = {
            name: len(places)
            for name, own in self.made_for.items()
            if identity in own and name in self.signatures
            if (places := self.signatures[name].fails.get(identity, ()))
            if any(_are_same(ours, theirs) for ours in here for theirs in places)
        }
        return min(found, key=found.__getitem__, default=None)

    def contrary(self, run: Symptoms, defect: str) -> list[str]:
        """The requirements that fail with this defect and pass in the run, in scenarios that were played. A claim that is not made cannot be untrue, so it says nothing."""
        own = self.made_for.get(defect, frozenset())
        return [
            identity
            for identity in self.signatures[defect].fails
            if identity in run.passes
            if (places := self._expected(run, identity, defect))
            if identity in own or any(place.expectation != _CLAIM for place in places)
        ]

    def against(self, run: Symptoms, defect: str) -> float:
        """How much the passes of the run speak against the defect: zero or less."""
        own = self.made_for.get(defect, frozenset())
        return sum(_OWN_PASSES if identity in own else _PASSES for identity in self.contrary(run, defect))


def _is_another_doubling(seen: Iterable[FailurePlace], expected: Iterable[FailurePlace]) -> bool:
    """Whether every history is doubled on one side, and none on the other: whatever else differs then, it is another fault."""
    doubled = [{_DOUBLED in place.kinds for place in places} for places in (seen, expected)]
    return doubled in ([{True}, {False}], [{False}, {True}])


def _are_same(ours: FailurePlace, theirs: FailurePlace) -> bool:
    """Whether both fail at one place in one way. What else a header lists is the server's own."""
    if ours[:4] != theirs[:4]:
        return False
    return ours.expectation == _HEADERS or _share(_words(ours.detail), _words(theirs.detail)) >= _SAME_WORDS


def _is_behind(place: FailurePlace, seen: Iterable[FailurePlace]) -> bool:
    """Whether the scenario failed at earlier steps in the run, so that this place was not reached."""
    ends = [each.step for each in seen if each.scenario == place.scenario]
    numbers = [_numbers(step) for step in (place.step, *ends)]
    return bool(ends) and all(numbers) and all(end < numbers[0] for end in numbers[1:])


def _numbers(step: str) -> list[int]:
    """The number of a step, such as 2.1, as numbers. Of what is no step, nothing."""
    parts = step.split(".")
    return [int(part) for part in parts] if all(part.isdigit() for part in parts) else []


def _weighed(ours: AbstractSet[Any], theirs: AbstractSet[Any], agreement: float, disagreement: float) -> float:
    """How much of the signature is seen counts most. More than that may come from another cause, and counts a little against it."""
    seen, other = len(ours & theirs) / len(theirs), len(ours - theirs) / len(ours)
    return seen * agreement + (1 - seen) * disagreement + other * log(_MORE)


def _detail_likeness(seen: Iterable[FailurePlace], expected: Iterable[FailurePlace]) -> float:
    """Whether the same was there instead of what was expected, at the places that both have.

    A check in Python has one place for everything that it finds, so there another detail is another finding.
    """
    theirs: dict[tuple[str, str, str], list[frozenset[str]]] = {}
    for place in expected:
        theirs.setdefault(place[:3], []).append(_words(place.detail))
    compared = [(place, theirs[place[:3]]) for place in seen if place[:3] in theirs]
    told = [
        (place.scenario, words, known)
        for place, known in compared
        if (words := _words(place.detail)) or frozenset() in known
    ]
    if not told:
        return 0.0
    alike = (max(_share(words, each) for each in known) for _, words, known in told)
    same = sum(share for share in alike if share >= _SAME_WORDS) / len(told)
    other = log(_OTHER_DETAIL if any(scenario for scenario, *_ in told) else _OTHER_FINDING)
    return same * log(_SAME_DETAIL) + (1 - same) * other


def _words(detail: str) -> frozenset[str]:
    """The words of a detail, without what differs from run to run. Their order may be chance: lists come as they come."""
    return frozenset(word for word in (each.strip("*,;…()") for each in detail.split()) if word)


def _share(ours: frozenset[str], theirs: frozenset[str]) -> float:
    return len(ours & theirs) / len(ours | theirs) if ours | theirs else 1.0


def _kinds(places: Iterable[FailurePlace]) -> set[str]:
    return {kind for place in places for kind in place.kinds}
