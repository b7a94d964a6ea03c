"""The verdicts on a scenario, on a requirement and on a run, and the rules that combine them.

Pure data: knows neither HTTP nor pytest.
"""

import enum
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from continuity_spec import Level, Requirement

_STATUS: Final = re.compile(r"(status )?\d{3}(, but the answer tells a failure)?(?= |:|$)")


class Verdict(enum.StrEnum):
    PASS = "pass"  # noqa: S105 - a verdict
    FAIL = "fail"
    NOT_APPLICABLE = "not_applicable"
    NOT_TESTED = "not_tested"
    ERROR = "error"

    @property
    def spoken(self) -> str:
        return self.value.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What happened in one scenario or example. `exchanges` and `interventions` are JSON objects, already redacted and shortened.

    `interventions` is None in results of an earlier kit, which did not record them.
    """

    scenario: str
    example: str
    outcome: Verdict
    reason: str = ""
    step: str = ""
    expectation: str = ""
    expected: str = ""
    actual: str = ""
    failure: str = ""
    exchanges: Sequence[Mapping[str, object]] = ()
    interventions: tuple[Mapping[str, object], ...] | None = None
    kinds: tuple[str, ...] = ()
    """In which ways expected and actual differ, such as "doubled" or "status 404". Empty if nothing differs."""
    output: str = ""
    """The last lines that the process of the target wrote while a failed scenario played; empty if the kit did not start it."""
    trace: tuple[str, ...] = ()
    """One line for each exchange, where results.json has it instead of the exchanges: nobody reads whole exchanges of what passed."""


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict on one requirement. `failure` is the full text for a terminal. `manual`: a person reviews it, a run cannot decide it."""

    id: str
    area: str
    level: Level
    text: str
    verdict: Verdict
    seconds: float
    reason: str = ""
    failure: str = ""
    evidence: tuple[Evidence, ...] = field(default=(), repr=False)
    manual: bool = False
    pack: str = ""
    """The pack that the requirement comes from. Empty for requirements of the release."""
    class_name: str = ""
    """The conformance class of the requirement."""
    blocked_by: str = ""
    """The requirement whose failure kept this one from reaching its own claim. The verdict is then *not tested*."""

    @property
    def shown_by(self) -> list[Evidence]:
        """The evidence that shows a failure."""
        return [each for each in self.evidence if each.outcome is Verdict.FAIL]

    @property
    def clearest(self) -> Evidence | None:
        return clearest(self.shown_by)


def clearest(evidence: Iterable[Evidence]) -> Evidence | None:
    """The evidence that says most briefly what differs; of two that are as brief, the one with fewer exchanges."""
    return min(evidence, key=lambda each: (brevity(each), len(each.exchanges)), default=None)


def brevity(evidence: Evidence) -> int:
    """How much there is to read, without the body of an answer."""
    return len(evidence.expected) + len(without_body(evidence.actual))


def without_body(actual: str) -> str:
    """What was there instead, without the body of an answer: "400" of `400 {"error": …`, and all of "red, blue"."""
    status = _STATUS.match(actual)
    return status[0] if status else actual


def undecided(requirement: Requirement, verdict: Verdict, reason: str) -> Result:
    """A result without evidence: no scenario was played."""
    return Result(
        requirement.id,
        requirement.area,
        requirement.level,
        requirement.text,
        verdict,
        0.0,
        reason,
        pack=requirement.pack,
        class_name=requirement.class_name,
    )


def by_review(requirement: Requirement) -> Result:
    """The result of a requirement that a person reviews. It counts as not tested, never as passed."""
    return replace(undecided(requirement, Verdict.NOT_TESTED, f"a reviewer answers: {requirement.manual}"), manual=True)


# The verdict on a requirement is that of its worst scenario. A scenario that does not apply changes nothing.
_WORST_FIRST = (Verdict.FAIL, Verdict.ERROR, Verdict.NOT_TESTED, Verdict.PASS, Verdict.NOT_APPLICABLE)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    present = set(verdicts)
    return next((verdict for verdict in _WORST_FIRST if verdict in present), Verdict.NOT_TESTED)


def by_weight(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Sort the evidence: failures first, then errors, and so on."""
    return sorted(evidence, key=lambda each: _WORST_FIRST.index(each.outcome))


def counts(results: Iterable[Result]) -> dict[Verdict, int]:
    tally = Counter(result.verdict for result in results)
    return {verdict: tally[verdict] for verdict in Verdict}


class RunVerdict(enum.StrEnum):
    CONFORMANT = "conformant"
    NOT_CONFORMANT = "not_conformant"
    INCOMPLETE = "incomplete"
    UNREACHABLE = "unreachable"
    ERROR = "error"

    @property
    def spoken(self) -> str:
        return _SPOKEN[self]

    @property
    def exit_code(self) -> int:
        return {"conformant": 0, "not_conformant": 1, "unreachable": 3, "error": 4, "incomplete": 5}[self.value]


_SPOKEN = {
    RunVerdict.CONFORMANT: "conformant",
    RunVerdict.NOT_CONFORMANT: "NOT conformant",
    RunVerdict.INCOMPLETE: "incomplete",
    RunVerdict.UNREACHABLE: "unreachable",
    RunVerdict.ERROR: "error (of the kit or the set-up)",
}


def gating(results: Iterable[Result], fail_on: Level) -> list[Result]:
    """The results that decide a verdict: binding ones, all with `fail_on` SHOULD, and none that a person reviews."""
    return [result for result in results if (result.level.binding or fail_on is not Level.MUST) and not result.manual]


def run_verdict(results: Sequence[Result], *, fail_on: Level = Level.MUST) -> RunVerdict:
    """The verdict on a whole run. A run that tests nothing is incomplete, never conformant."""
    verdicts = {result.verdict for result in gating(results, fail_on)}
    if Verdict.FAIL in verdicts:
        return RunVerdict.NOT_CONFORMANT
    if Verdict.ERROR in {result.verdict for result in results}:
        return RunVerdict.ERROR
    if Verdict.NOT_TESTED in verdicts or Verdict.PASS not in verdicts:
        return RunVerdict.INCOMPLETE
    return RunVerdict.CONFORMANT
