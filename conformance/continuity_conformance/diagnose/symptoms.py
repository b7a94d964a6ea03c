"""The symptoms of a run: which requirements fail, where, and in which way; and which pass."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final, NamedTuple

from continuity_conformance.core.text import cut, one_line
from continuity_conformance.core.verdicts import Evidence, Result, Verdict
from continuity_spec import load_spec

_NUMBER: Final = re.compile(r"[\d.]+")
_PLACES_KEPT: Final = 100
_SEPARATOR: Final = " · "
_VARYING: Final = re.compile(r"\b\w*[-_]?[0-9a-f]{6,}\b|\S*\d\S*|(?<!\S)/\S+")
"""Ids, numbers and paths in a text, which differ from run to run and from machine to machine."""
_DETAIL: Final = 40
_TOLD: Final = "but the answer tells a failure"
"""What evidence says of a stream that began with 200 and then tells an error."""


class FailurePlace(NamedTuple):
    """Where and how a scenario fails: its name, the number of the step, the expectation, the kinds of difference, and what was there instead."""

    scenario: str
    step: str
    expectation: str
    kinds: tuple[str, ...]
    detail: str = ""

    @property
    def text(self) -> str:
        return _SEPARATOR.join([self.scenario, self.step, self.expectation, ", ".join(self.kinds), self.detail])


def read_place(text: str) -> FailurePlace:
    scenario, step, expectation, kinds, detail = text.rsplit(_SEPARATOR, 4)
    return _comparable(FailurePlace(scenario, step, expectation, tuple(kinds.split(", ")), detail))


def _comparable(place: FailurePlace) -> FailurePlace:
    """The place without what each server words as it likes: the body of an answer with another status. A failure told inside a stream is no acceptance."""
    if not place.kinds[0].startswith("status "):
        return place
    kinds = tuple(f"{kind} told" if _TOLD in place.detail else kind for kind in place.kinds)
    return place._replace(kinds=kinds, detail="")


@dataclass(frozen=True, slots=True)
class Symptoms:
    """What a run shows. A requirement that is neither in `fails` nor in `passes` was not decided, and says nothing.

    A requirement that is blocked by another one counts as failing here: it fails in the same way, for the same cause. `silent`: the scenarios of each
    requirement that do not apply to the target, or could not be tested on it.
    """

    fails: Mapping[str, tuple[FailurePlace, ...]]
    passes: frozenset[str]
    silent: Mapping[str, frozenset[str]] = field(default_factory=dict)


def symptoms(results: Iterable[Result]) -> Symptoms:
    """The symptoms in the results of a run."""
    found = list(results)
    failing = [result for result in found if result.verdict is Verdict.FAIL or result.blocked_by]
    return Symptoms(
        {result.id: _places(result) for result in failing},
        frozenset(result.id for result in found if result.verdict is Verdict.PASS),
        {result.id: silent for result in found if (silent := _silent(result))},
    )


def _silent(result: Result) -> frozenset[str]:
    """The scenarios that decided nothing. Where a whole requirement is blocked, its blocked scenarios are what fails."""
    undecided = {Verdict.NOT_APPLICABLE, Verdict.NOT_TESTED}
    return frozenset(
        _scenario(each)
        for each in result.evidence
        if each.outcome in undecided and (result.shown_by or not each.expectation)
    )


def failing(result: Result) -> list[Evidence]:
    """The evidence of what fails; of a requirement that is blocked as a whole, what would fail if it were not."""
    return result.shown_by or [
        each for each in result.evidence if each.outcome is Verdict.NOT_TESTED and each.expectation
    ]


def _places(result: Result) -> tuple[FailurePlace, ...]:
    """The different places at which a requirement fails."""
    return tuple(dict.fromkeys(place_of(each, result.id) for each in failing(result)))[:_PLACES_KEPT]


def shown_at(result: Result, places: Iterable[FailurePlace]) -> list[Evidence]:
    """The evidence of the failures at these places: of those that differ in the same way, if there are any."""
    found = [(each, place_of(each, result.id)) for each in result.shown_by]
    wanted = [place[:4] for place in places]
    alike = [each for each, place in found if place[:4] in wanted]
    return alike or [each for each, place in found if place[:3] in {place[:3] for place in wanted}]


@cache
def _judged_everywhere() -> frozenset[str]:
    """The requirements that every answer of the run is judged by: which scenario shows it first is chance."""
    return frozenset(requirement.id for requirement in load_spec().requirements if requirement.always is not None)


def place_of(evidence: Evidence, requirement: str) -> FailurePlace:
    always = requirement in _judged_everywhere()
    number = _NUMBER.match(evidence.step)
    step = evidence.expected if evidence.expectation == "claim" else number.group() if number else ""
    place = FailurePlace(
        "" if always else _scenario(evidence),
        "" if always else _short(step),
        evidence.expectation,
        tuple(sorted(evidence.kinds)) or (evidence.expectation,),
        _short(_VARYING.sub("*", evidence.actual)),
    )
    return _comparable(place)


def _scenario(evidence: Evidence) -> str:
    return _short(f"{evidence.scenario}: {evidence.example}" if evidence.example else evidence.scenario)


def _short(text: str) -> str:
    return cut(one_line(text), _DETAIL).replace(_SEPARATOR, " ")
