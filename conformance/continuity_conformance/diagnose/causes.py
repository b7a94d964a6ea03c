"""The causes of the failures of a run: known defects that explain groups of them, and groups of the others."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final

from continuity_conformance.core.cause import Cause, ShownFailure
from continuity_conformance.core.text import cut, one_line
from continuity_conformance.core.verdicts import Evidence, Result, Verdict, clearest
from continuity_conformance.diagnose.cover import Cover
from continuity_conformance.diagnose.match import Knowledge
from continuity_conformance.diagnose.signatures import signatures
from continuity_conformance.diagnose.symptoms import shown_at, symptoms
from continuity_conformance.diagnose.unknown import ADVICE, BREAKS, FORMS, TELLING, common_way, grouped
from continuity_conformance.suite.defects import defects
from continuity_spec import load_spec

_HIGH: Final = 0.85
_MEDIUM: Final = 0.65
_MARGIN: Final = 1.5
_ALTERNATIVES: Final = 3
_RIVALS: Final = 2
"""With more defects that explain almost as much, the name says little: only the evidence does."""
_SHOWN: Final = 2
_FEW: Final = 2
_TITLE: Final = 240
_DOUBLED: Final = "doubled"


@cache
def known() -> Knowledge:
    """What the kit knows of its own defects."""
    requirements = load_spec().requirements
    made_for = {name: frozenset(each.id for each in requirements if name in each.refuted_by) for name in signatures()}
    return Knowledge(signatures(), made_for)


def causes(results: Sequence[Result], knowledge: Knowledge | None = None) -> tuple[Cause, ...]:
    """The causes of all failures, in the order in which to fix them. Nothing that was not tested is a cause."""
    failed = {result.id: result for result in results if result.verdict is Verdict.FAIL}
    if not failed:
        return ()
    diagnosis = _Diagnosis(results, knowledge or known())
    found = [*diagnosis.known_causes(), *diagnosis.other_causes()]
    return tuple(sorted(found, key=lambda cause: _order(cause, failed)))


class _Diagnosis:
    def __init__(self, results: Sequence[Result], knowledge: Knowledge) -> None:
        self.results = {result.id: result for result in results}
        self.run = symptoms(results)
        self.knowledge = knowledge
        self.cover = Cover(self.run, knowledge)
        self.groups: dict[str, list[str]] = {}
        self.rest: list[str] = []
        self.telling: dict[str, Evidence | None] = {}
        """The evidence by which a failure went to others of its way, although it may have more."""
        for identity in self.run.fails:
            defect = self.cover.explained_by(identity)
            (self.groups.setdefault(defect, []) if defect else self.rest).append(identity)
        self._drop_weak_causes()
        self._merge_causes_of_one_way()
        self._adopt()

    def _drop_weak_causes(self) -> None:
        """What only blocked requirements speak for is no cause."""
        for defect, explained in list(self.groups.items()):
            if not self._failed(explained):
                self.rest += self.groups.pop(defect)

    def _merge_causes_of_one_way(self) -> None:
        """Three or more causes that are all about forms, all about recommendations, or all a server that breaks, are one: a maintainer decides about them as a whole."""
        for way in (FORMS, ADVICE, BREAKS):
            merged = [defect for defect, explained in self.groups.items() if self._are_all(explained, way, defect)]
            others = sum(self._way(identity) == way for identity in self._failed(self.rest))
            for defect in merged if len(merged) + others > _FEW else ():
                self.rest += (ids := self.groups.pop(defect))
                self.telling |= {identity: self._clearest(identity, defect) for identity in ids}

    def _are_all(self, ids: Iterable[str], way: str, defect: str) -> bool:
        return all(self._way(identity, defect) == way for identity in self._failed(ids))

    def _way(self, identity: str, defect: str | None = None) -> str:
        return common_way(self.results[identity], self._clearest(identity, defect))

    def _adopt(self) -> None:
        """A failure that the signature of a cause leaves undecided belongs to the cause if it fails in the same way as others of it.

        So does the only failure of a cause, and all of a doubtful one: the other cause explains them too.
        """
        for defect, explained in sorted(self.groups.items(), key=lambda group: len(group[1])):
            gives_way = len(explained) == 1 or self._is_doubtful(defect, explained)
            if gives_way and all(self._nearest(identity, defect) for identity in explained):
                self.rest += self.groups.pop(defect)
        rest = self._failed(self.rest)
        for identity in rest:
            nearest = self._nearest(identity)
            if nearest is not None and not self._are_many(identity, rest):
                self.rest.remove(identity)
                self.groups[nearest].append(identity)

    def _is_doubtful(self, defect: str, explained: Sequence[str]) -> bool:
        """Whether passes speak against a cause that only explains differences which mean the same everywhere."""
        telling = all(self._kinds(identity) <= TELLING for identity in explained)
        return telling and self._confidence(defect, explained) != "high"

    def _are_many(self, identity: str, rest: Sequence[str]) -> bool:
        """Whether so many others that nothing explains fail just like this one that they are a cause of their own."""
        return (
            self._kinds(identity) <= TELLING and sum(self._kinds(each) == self._kinds(identity) for each in rest) > _FEW
        )

    def _nearest(self, identity: str, besides: str = "") -> str | None:
        """The cause whose failures are most of all like this one; None if nothing is like it.

        A signature that decides about this one decides, unless it fails in a way that means the same everywhere: a server has such a fault in more than one place.
        """
        telling = self._kinds(identity) <= TELLING
        alike = {
            defect: sum(self._alike(identity, each) for each in explained) / (len(explained) if telling else 1)
            for defect, explained in self.groups.items()
            if defect != besides and (telling or not self.knowledge.decides(defect, identity))
        }
        nearest = max(alike, key=alike.__getitem__, default=None)
        return nearest if nearest is not None and alike[nearest] else None

    def _alike(self, one: str, other: str) -> bool:
        """Whether two requirements fail in the same way: in one area, or in a way that means the same in all areas."""
        ours, theirs = self._kinds(one), self._kinds(other)
        if ours <= TELLING:
            # A history that is doubled shows halves of turns too; halves alone are another fault.
            return theirs <= TELLING and bool(ours & theirs) and (_DOUBLED in ours) == (_DOUBLED in theirs)
        return self.results[one].area == self.results[other].area and ours == theirs

    def _kinds(self, identity: str) -> set[str]:
        return {kind for place in self.run.fails[identity] for kind in place.kinds}

    def known_causes(self) -> Iterable[Cause]:
        return (self._known(defect, explained) for defect, explained in self.groups.items())

    def other_causes(self) -> Iterable[Cause]:
        """What no known defect explains, grouped by the way in which it fails. A blocked requirement goes with the one that blocks it."""
        failed = self._failed(self.rest)
        for group in grouped((self.results[identity], self._clearest(identity)) for identity in failed):
            ids = [result.id for result in group]
            blocked = [each for each in self.rest if self.results[each].blocked_by in ids]
            yield Cause(
                _title(group, self._clearest(ids[0])),
                None,
                "unknown",
                tuple(ids),
                tuple(blocked),
                evidence=self._shown(ids),
            )

    def _known(self, defect: str, explained: Sequence[str]) -> Cause:
        listed = defects()[defect]
        likeness = self.cover.likeness[defect]
        strongest = sorted(explained, key=lambda identity: -likeness.get(identity, 0.0))
        failed = self._failed(strongest)
        return Cause(
            listed.text,
            defect,
            self._confidence(defect, explained),
            tuple(self._failed(explained)),
            tuple(identity for identity in explained if identity not in failed),
            tuple(self.knowledge.contrary(self.run, defect)),
            tuple(self.cover.alternatives(defect, _MARGIN)[:_ALTERNATIVES]),
            self._shown(failed, defect),
            listed.issue,
        )

    def _confidence(self, defect: str, explained: Iterable[str]) -> str:
        speaks_for = sum(self.cover.likeness[defect].get(identity, 0.0) for identity in explained)
        against = -self.knowledge.against(self.run, defect)
        share = speaks_for / (speaks_for + against)
        rivals = len(self.cover.alternatives(defect, _MARGIN))
        own = self.knowledge.made_for.get(defect, frozenset())
        if share < _MEDIUM or rivals > _RIVALS or not own & self.run.fails.keys():
            return "low"
        return "medium" if share < _HIGH or rivals else "high"

    def _failed(self, ids: Iterable[str]) -> list[str]:
        return [identity for identity in ids if self.results[identity].verdict is Verdict.FAIL]

    def _shown(self, ids: Sequence[str], defect: str | None = None) -> tuple[ShownFailure, ...]:
        """The clearest evidence of the first requirements: of a known defect, at a place where the defect fails too."""
        return tuple(
            ShownFailure(identity, each.scenario, each.step, each.expectation, each.expected, each.actual)
            for identity in ids[:_SHOWN]
            if (each := self._clearest(identity, defect)) is not None
        )

    def _clearest(self, identity: str, defect: str | None = None) -> Evidence | None:
        if identity in self.telling:
            return self.telling[identity]
        result = self.results[identity]
        places = self.knowledge.signatures[defect].fails.get(identity, ()) if defect else ()
        return clearest(shown_at(result, places)) or result.clearest


def _title(group: Sequence[Result], shown: Evidence | None) -> str:
    first = group[0]
    if len(group) > 1 and (way := common_way(first, shown)):
        return way
    what = f"{shown.expectation}: expected {shown.expected}, actual {shown.actual}" if shown else first.reason
    return cut(one_line(f"{first.id} is not met: {what or first.text}"), _TITLE)


def _order(cause: Cause, failed: Mapping[str, Result]) -> tuple[int, bool, int]:
    """What to fix first: the lowest class first; within a class what binds, and then what explains and blocks most."""
    places = {each.name: place for place, each in enumerate(load_spec().classes)}
    own = [
        (places.get(failed[each].class_name, len(places)), not failed[each].level.binding) for each in cause.explains
    ]
    return (*min(own), -len(cause.explains) - len(cause.blocks))
