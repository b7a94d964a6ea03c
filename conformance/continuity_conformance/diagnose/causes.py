"""The causes of the failures of a run: known defects that explain groups of them, and groups of the others."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final

from continuity_conformance.core.cause import Cause, ShownFailure
from continuity_conformance.core.verdicts import Evidence, Result, Verdict, brevity, clearest
from continuity_conformance.diagnose.alike import are_alike, look
from continuity_conformance.diagnose.cover import Cover
from continuity_conformance.diagnose.match import Knowledge
from continuity_conformance.diagnose.signatures import signatures
from continuity_conformance.diagnose.symptoms import shown_at, symptoms
from continuity_conformance.diagnose.titles import title
from continuity_conformance.diagnose.unknown import ADVICE, BREAKS, FORMS, STRICT, TELLING, common_way, grouped
from continuity_conformance.suite.defects import defects
from continuity_spec import load_spec

_HIGH: Final = 0.85
_MEDIUM: Final = 0.65
_PLACES: Final = 2
"""At how many places at least a run must fail like the defect: one alone may be chance."""
_WHOLE: Final = 0.6
"""How much of the signature at least a run must show."""
_MARGIN: Final = 1.5
_TIE: Final = 0.5
"""A difference between two defects that says nothing: the title names both."""
_ALTERNATIVES: Final = 3
_RIVALS: Final = 2
"""With more defects that explain almost as much, the name says little: only the evidence does."""
_SHOWN: Final = 2
_FEW: Final = 2
_EARLIER: Final = "An earlier kit wrote these results, without the way in which each failure differs: run the suite again to find the causes"


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
        self.named: dict[str, str] = {}
        """What is known of a failure that went to others of its way."""
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
        """Three or more causes that are all about forms, all about recommendations, or all a server that breaks, are one: a maintainer decides about them as a whole.

        Those whose requirement fails that they were made to break are named in its title.
        """
        for way in (FORMS, ADVICE, BREAKS):
            merged = [defect for defect, explained in self.groups.items() if self._are_all(explained, way, defect)]
            others = sum(self._way(identity) == way for identity in self._failed(self.rest))
            for defect in merged if len(merged) + others > _FEW else ():
                self._merge(defect)

    def _merge(self, defect: str) -> None:
        names = (
            self.knowledge.made_for.get(defect, frozenset())
            if self._confidence(defect, self.groups[defect]) != "low"
            else ()
        )
        ids = self.groups.pop(defect)
        self.rest += ids
        self.telling |= {identity: self._clearest(identity, defect) for identity in ids}
        self.named |= {identity: defects()[defect].text for identity in ids if identity in names}

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
            rest = self._failed([*self.rest, *explained])
            if gives_way and all(self._is_adopted(identity, rest, defect) for identity in explained):
                self.rest += self.groups.pop(defect)
        rest = self._failed(self.rest)
        for identity in rest:
            nearest = self._nearest(identity)
            if nearest is not None and self._is_adopted(identity, rest):
                self.rest.remove(identity)
                self.groups[nearest].append(identity)

    def _is_adopted(self, identity: str, rest: Sequence[str], besides: str = "") -> bool:
        return self._nearest(identity, besides) is not None and not self._are_many(identity, rest)

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
        looks = [look(self.results[each], shown) for each in (one, other) if (shown := self._clearest(each))]
        return len(looks) > 1 and are_alike(*looks)

    def _kinds(self, identity: str) -> set[str]:
        return {kind for place in self.run.fails[identity] for kind in place.kinds}

    def known_causes(self) -> Iterable[Cause]:
        return (self._known(defect, explained) for defect, explained in self.groups.items())

    def other_causes(self) -> Iterable[Cause]:
        """What no known defect explains, grouped by the way in which it fails. A blocked requirement goes with the one that blocks it."""
        failed = self._failed(self.rest)
        for group in grouped((self.results[identity], self._clearest(identity)) for identity in failed):
            ids = [result.id for result in group]
            first = self._clearest_first(ids)
            leading = self.results[first[0]]
            yield Cause(
                title(group, leading, self._clearest(leading.id), self._names(ids)),
                None,
                "unknown",
                tuple(ids),
                self._blocked_by(ids),
                evidence=self._shown(first),
            )

    def _names(self, ids: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(self.named[identity] for identity in ids if identity in self.named))

    def _known(self, defect: str, explained: Sequence[str]) -> Cause:
        listed = defects()[defect]
        failed = self._failed(explained)
        return Cause(
            self._title(defect),
            defect,
            self._confidence(defect, explained),
            tuple(failed),
            self._blocked_by(failed),
            tuple(self.knowledge.contrary(self.run, defect)),
            tuple(self.cover.alternatives(defect, _MARGIN)[:_ALTERNATIVES]),
            tuple(self._besides(defect, failed)),
            self._shown(self._clearest_first(failed, defect), defect),
            listed.issue,
        )

    def _title(self, defect: str) -> str:
        """What the defect does. Where another one fits as well, what that does too."""
        names = [defect, *self.cover.alternatives(defect, _TIE)[:1]]
        return ". Or: ".join(defects()[name].text.rstrip(".") for name in names)

    def _besides(self, defect: str, failed: Iterable[str]) -> Iterable[str]:
        """Where the requirements that the defect explains fail in other scenarios, in which another defect fails that was made for them."""
        for identity in failed:
            own = {place[0] for place in self.knowledge.signatures[defect].fails.get(identity, ())}
            left = dict.fromkeys(place.scenario for place in self.run.fails[identity] if place.scenario not in own)
            names = {
                scenario: self.knowledge.made_to_fail(identity, self.run.fails[identity], scenario) for scenario in left
            }
            yield from (f'{identity} "{scenario}", as with {name}' for scenario, name in names.items() if own and name)

    def _blocked_by(self, ids: Sequence[str]) -> tuple[str, ...]:
        """What could not be tested because one of these fails."""
        return tuple(result.id for result in self.results.values() if result.blocked_by in ids)

    def _clearest_first(self, ids: Iterable[str], defect: str | None = None) -> list[str]:
        """What the defect was made to break, then what binds before forms and advice, the lowest class first, and what is read quickly."""
        own = self.knowledge.made_for.get(defect or "", frozenset())
        return sorted(
            ids,
            key=lambda identity: (
                identity not in own,
                *_weight(self.results[identity]),
                self._brevity(identity, defect),
            ),
        )

    def _brevity(self, identity: str, defect: str | None) -> int:
        shown = self._clearest(identity, defect)
        return brevity(shown) if shown else 0

    def _confidence(self, defect: str, explained: Iterable[str]) -> str:
        speaks_for = sum(self.cover.likeness[defect].get(identity, 0.0) for identity in explained)
        against = -self.knowledge.against(self.run, defect)
        share = speaks_for / (speaks_for + against)
        rivals = len(self.cover.alternatives(defect, _MARGIN))
        own = self.knowledge.made_for.get(defect, frozenset())
        same, places = self._same_places(defect, explained)
        if share < _MEDIUM or rivals > _RIVALS or not own & self.run.fails.keys() or 2 * same < places:
            return "low"
        is_plain = same >= _PLACES and self.cover.shown(defect) >= _WHOLE
        return "high" if share >= _HIGH and not rivals and is_plain else "medium"

    def _same_places(self, defect: str, explained: Iterable[str]) -> tuple[int, int]:
        """At how many places the failures that the defect explains are where it fails too, and at how many they are."""
        signature = self.knowledge.signatures[defect].fails
        found = [
            place[:3] in {each[:3] for each in signature[identity]}
            for identity in self._failed(explained)
            if identity in signature
            for place in self.run.fails[identity]
        ]
        return sum(found), len(found)

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


def _weight(result: Result) -> tuple[bool, bool, int]:
    """How much a failure matters: forms least, then advice; what binds by its class, the lowest first."""
    return result.class_name == STRICT, not result.level.binding, _classes().get(result.class_name, len(_classes()))


@cache
def _classes() -> Mapping[str, int]:
    return {each.name: place for place, each in enumerate(load_spec().classes)}


def cause_of_an_earlier_run(results: Sequence[Result]) -> Cause:
    """The one cause of a run of which is not known in which way each failure differs."""
    failed = tuple(result.id for result in results if result.verdict is Verdict.FAIL)
    return Cause(_EARLIER, None, "unknown", failed)


def _order(cause: Cause, failed: Mapping[str, Result]) -> tuple[int, bool, int]:
    """What to fix first: the lowest class first; within a class what binds, and then what explains and blocks most."""
    places = _classes()
    own = [
        (places.get(failed[each].class_name, len(places)), not failed[each].level.binding) for each in cause.explains
    ]
    return (*min(own), -len(cause.explains) - len(cause.blocks))
