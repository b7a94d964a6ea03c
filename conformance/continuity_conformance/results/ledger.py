"""The ledger of a run: the result of each requirement of the release, and how the run ended.

It keeps results and decides nothing about the target. It knows neither pytest nor HTTP.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Final

from continuity_conformance.core.cause import Cause
from continuity_conformance.core.errors import ContinuityError, UnreachableError
from continuity_conformance.core.run_options import RunOptions
from continuity_conformance.core.urls import public_url
from continuity_conformance.core.verdicts import Result, RunVerdict, Verdict, run_verdict, undecided
from continuity_conformance.diagnose.causes import causes
from continuity_conformance.results.baseline import Baseline, KnownFailure
from continuity_conformance.results.classes import ClassVerdict, class_of, class_verdicts, selection_verdict
from continuity_conformance.results.gate import Gate, GateInput, judge
from continuity_conformance.results.tally import NOT_SELECTED
from continuity_conformance.suite.packs import Packs
from continuity_conformance.suite.release import ReleasedSpec
from continuity_conformance.suite.select import deciding
from continuity_spec import Requirement

STOPPED: Final = "the run was stopped before this was decided"
UNDECIDED: Final = "not decided yet when this was written: the run was going on"


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """What a report says about the target. It contains no secret."""

    name: str
    url: str
    header: str
    options: Mapping[str, str]
    offers: tuple[str, ...]
    observed: str  # "probe", "answers" or "nothing"


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """A run as far as it went. `results` has each requirement of the release and the packs once, in their order."""

    run_options: RunOptions
    release: str
    requirements: tuple[Requirement, ...]
    packs: Packs
    target: TargetFacts
    started: datetime
    seconds: float
    results: tuple[Result, ...]
    verdict: RunVerdict
    complete: bool
    """Whether all of the release was selected, and the run went to its end."""
    finished: bool
    """Whether every selected requirement has a result."""
    gate: Gate
    baseline: Baseline
    selected: frozenset[str]
    """The ids that the run was asked to decide."""
    deciding: frozenset[str]
    """The ids whose verdicts decide about the run. The others are only reported."""
    classes: tuple[ClassVerdict, ...]
    """The verdicts on the conformance classes, without those that the user did not ask for."""
    causes: tuple[Cause, ...] = ()
    """What causes the failures, in the order in which to fix it. Only at the end of a run."""

    @property
    def today(self) -> date:
        """The date that the baseline's dates are compared with: the start of the run, wherever the results are read."""
        return self.started.date()


class Ledger:
    """The run adds results when they are decided; others read. `close` or `give_up` ends it. `decided` and `so_far` work at any moment, in any thread."""

    def __init__(self, run_options: RunOptions, release: ReleasedSpec, baseline: Baseline | None = None) -> None:
        self.run_options = run_options
        self.release = release
        self.baseline = baseline or Baseline()
        self.target = _not_contacted(run_options.target)
        self._started = datetime.now(UTC)
        self._clock = time.monotonic()
        self._selected = frozenset(requirement.id for requirement in release.requirements)
        self._deciding = deciding(run_options.classes, release)
        self._results: dict[str, Result] = {}

    def select(self, ids: Iterable[str]) -> None:
        self._selected = frozenset(ids)

    def add(self, result: Result) -> None:
        """Book a result. The first result of a requirement counts: what the terminal shows is what is written."""
        self._results.setdefault(result.id, result)

    def replace(self, result: Result) -> None:
        """Replace a result that could not be reported."""
        self._results[result.id] = result

    def accepted(self, result: Result) -> KnownFailure | None:
        """The entry of the baseline that accepts this failure today."""
        entry = self.baseline.entries.get(result.id)
        covered = result.verdict is Verdict.FAIL and entry is not None and entry.covers(result.verdict)
        return entry if entry and covered and not entry.expired(self._started.date()) else None

    def counts(self, result: Result) -> bool:
        """Whether a failure of this requirement fails the run, unless the baseline accepts it."""
        return result.id in self._deciding and self.run_options.gates(result.level)

    def result(self, requirement_id: str) -> Result | None:
        return self._results.get(requirement_id)

    def decided(self) -> list[Result]:
        """All results so far, in the order in which they were decided."""
        return list(self._results.copy().values())

    def close(self) -> RunOutcome:
        """The outcome at the end. What is not decided, or was not selected, is not tested."""
        outcome = self._judged(STOPPED, finished=self._selected <= self._results.keys())
        failed = any(result.verdict is Verdict.FAIL for result in outcome.results)
        return replace(outcome, causes=causes(outcome.results)) if failed else outcome

    def so_far(self) -> RunOutcome:
        """Snapshot for crash-safe interim results."""
        return self._judged(UNDECIDED, finished=False)

    def give_up(self, error: ContinuityError) -> RunOutcome:
        """The outcome of a run that could not go on: target unreachable, wrong set-up, or a bug in the kit. Undecided requirements get this error."""
        results = tuple(
            self._results.get(entry.id) or undecided(entry, Verdict.ERROR, str(error))
            for entry in self.release.requirements
        )
        verdict = RunVerdict.UNREACHABLE if isinstance(error, UnreachableError) else RunVerdict.ERROR
        return self._outcome(results, verdict, Gate(error.exit_code, (str(error),)), finished=False)

    def _judged(self, reason_if_open: str, *, finished: bool) -> RunOutcome:
        decided = self._results.copy()
        results = tuple(
            decided.get(entry.id) or self._undecided(entry, reason_if_open) for entry in self.release.requirements
        )
        own = [result for result in results if not result.pack and result.id in self._deciding]
        verdict = run_verdict(own, fail_on=self.run_options.fail_on)
        unfinished = not finished or any(result.id not in decided for result in own)
        if verdict is RunVerdict.CONFORMANT and (unfinished or any(each.needs for each in self._classes(own))):
            verdict = RunVerdict.INCOMPLETE
        broken = tuple(str(error) for error in self.release.packs.broken)
        judged = GateInput(results, self._selected, self._deciding, finished, self._started.date(), broken)
        return self._outcome(results, verdict, judge(judged, self.run_options, self.baseline), finished=finished)

    def _classes(self, results: Sequence[Result]) -> tuple[ClassVerdict, ...]:
        """The classes that the user asked for, with those that they require; all without `--class`."""
        asked, fail_on = self.run_options.classes, self.run_options.fail_on
        selected = {class_of(result) for result in results if result.id in self._selected}
        verdicts = [
            each for each in class_verdicts(results, self.release.classes, fail_on=fail_on) if each.name in selected
        ]
        if not asked:
            return tuple(verdicts)
        required = {name for each in self.release.classes if each.name in asked for name in (each.name, *each.requires)}
        selections = [each for each in self.release.selections if each.name in asked]
        return (
            *(each for each in verdicts if each.name in required),
            *(selection_verdict(each, results, fail_on=fail_on) for each in selections),
        )

    def _undecided(self, requirement: Requirement, reason: str) -> Result:
        return undecided(requirement, Verdict.NOT_TESTED, reason if requirement.id in self._selected else NOT_SELECTED)

    def _outcome(self, results: tuple[Result, ...], verdict: RunVerdict, gate: Gate, *, finished: bool) -> RunOutcome:
        return RunOutcome(
            run_options=self.run_options,
            release=self.release.name,
            requirements=self.release.requirements,
            packs=self.release.packs,
            target=self.target,
            started=self._started,
            seconds=time.monotonic() - self._clock,
            results=results,
            verdict=verdict,
            complete=finished and all(result.id in self._selected for result in results if not result.pack),
            finished=finished,
            gate=gate,
            baseline=self.baseline,
            selected=self._selected,
            deciding=self._deciding,
            classes=self._classes(results),
        )


def _not_contacted(target: str) -> TargetFacts:
    """What is known of a target before the first request. A password in the URL is not repeated."""
    if "://" not in target:
        return TargetFacts(target, "", "", {}, (), "nothing")
    url = public_url(target)
    return TargetFacts(url, url, "", {}, (), "nothing")
