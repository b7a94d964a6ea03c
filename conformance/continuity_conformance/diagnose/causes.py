"""The causes of the failures of a run: known defects that explain groups of them, and groups of the others."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from continuity_conformance.core.cause import Cause, ShownFailure
from continuity_conformance.core.verdicts import Result, Verdict, brevity
from continuity_conformance.diagnose.confidence import MARGIN
from continuity_conformance.diagnose.groups import Groups
from continuity_conformance.diagnose.match import Knowledge
from continuity_conformance.diagnose.signatures import signatures
from continuity_conformance.diagnose.titles import observed, title, title_of_known
from continuity_conformance.diagnose.unknown import STRICT, common_way, grouped
from continuity_conformance.suite.defects import defects
from continuity_spec import load_spec

_TIE: Final = 0.5
"""A difference between two defects that says nothing: the title names both."""
_ALTERNATIVES: Final = 3
_SHOWN: Final = 2
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
    diagnosis = _Diagnosis(Groups(results, knowledge or known()))
    found = [*diagnosis.known_causes(), *diagnosis.other_causes()]
    return tuple(sorted(found, key=lambda cause: _order(cause, failed)))


class _Besides(NamedTuple):
    """A scenario in which a requirement fails although the defect does not, and the defect that fails there."""

    requirement: str
    scenario: str
    defect: str

    @property
    def text(self) -> str:
        return f'{self.requirement} "{self.scenario}", as with {self.defect}'


class _Diagnosis:
    """The groups as causes."""

    def __init__(self, found: Groups) -> None:
        self.found = found
        self.results = found.results

    def known_causes(self) -> Iterable[Cause]:
        return (self._known(defect, explained) for defect, explained in self.found.groups.items())

    def other_causes(self) -> Iterable[Cause]:
        """What no known defect explains, grouped by the way in which it fails."""
        failed = self.found.failed(self.found.rest)
        for group in grouped((self.results[identity], self.found.clearest(identity)) for identity in failed):
            ids = [result.id for result in group]
            first = self._clearest_first(ids)
            leading = self.results[first[0]]
            yield Cause(
                title(group, leading, self.found.clearest(leading.id), self._names(ids)),
                None,
                "unknown",
                tuple(ids),
                self._blocked_by(ids),
                besides=tuple(self._other_ways(leading)),
                evidence=self._shown(first),
            )

    def _other_ways(self, result: Result) -> Iterator[str]:
        """Where the requirement that gives a cause its title fails in other ways: each may be another fault."""
        shown = self.found.clearest(result.id)
        told = {shown.kinds} if shown and not common_way(result, shown) else {each.kinds for each in result.shown_by}
        for each in sorted(result.shown_by, key=brevity):
            if each.kinds not in told:
                told.add(each.kinds)
                yield f"{result.id} {observed(each)}"

    def _names(self, ids: Iterable[str]) -> list[str]:
        named = self.found.named
        return list(dict.fromkeys(named[identity] for identity in ids if identity in named))

    def _known(self, defect: str, explained: Sequence[str]) -> Cause:
        failed, cover = self.found.failed(explained), self.found.cover
        besides = list(self._besides(defect, failed))
        elsewhere = dict.fromkeys(each.defect for each in besides)
        alternatives = [each for each in cover.alternatives(defect, MARGIN) if each not in elsewhere]
        ties = [each for each in cover.alternatives(defect, _TIE) if each not in elsewhere]
        confidence = self.found.confidence(defect, explained)
        return Cause(
            title_of_known(defect, ties, list(elsewhere) if confidence == "low" else []),
            defect,
            confidence,
            tuple(failed),
            self._blocked_by(failed),
            tuple(self.found.knowledge.contrary(self.found.run, defect)),
            tuple(alternatives[:_ALTERNATIVES]),
            tuple(each.text for each in besides),
            self._shown(self._clearest_first(failed, defect), defect),
            defects()[defect].issue,
        )

    def _besides(self, defect: str, failed: Iterable[str]) -> Iterator[_Besides]:
        """Where the requirements that the defect explains fail in other scenarios, in which a defect fails that was made for them."""
        knowledge, fails = self.found.knowledge, self.found.run.fails
        for identity in failed:
            own = {place.scenario for place in knowledge.signatures[defect].fails.get(identity, ())}
            scenarios = dict.fromkeys(place.scenario for place in fails[identity] if place.scenario not in own)
            for scenario in scenarios if own else ():
                if name := knowledge.made_to_fail(identity, fails[identity], scenario):
                    yield _Besides(identity, scenario, name)

    def _blocked_by(self, ids: Sequence[str]) -> tuple[str, ...]:
        """What could not be tested because one of these fails."""
        return tuple(result.id for result in self.results.values() if result.blocked_by in ids)

    def _clearest_first(self, ids: Iterable[str], defect: str | None = None) -> list[str]:
        """What the defect was made to break, then what binds before forms and advice, the lowest class first, and what is read quickly."""
        own = self.found.knowledge.made_for.get(defect or "", frozenset())

        def weight(identity: str) -> tuple[object, ...]:
            shown = self.found.clearest(identity, defect)
            return identity not in own, *_weight(self.results[identity]), brevity(shown) if shown else 0

        return sorted(ids, key=weight)

    def _shown(self, ids: Sequence[str], defect: str | None = None) -> tuple[ShownFailure, ...]:
        """The clearest evidence of the first requirements."""
        return tuple(
            ShownFailure(identity, each.scenario, each.step, each.expectation, each.expected, each.actual)
            for identity in ids[:_SHOWN]
            if (each := self.found.clearest(identity, defect)) is not None
        )


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
