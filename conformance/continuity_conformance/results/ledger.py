"""The ledger of a run: what is decided about each requirement of the release, and how the run ended.

It books; it decides nothing about the target. Knows neither pytest nor HTTP.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

from continuity_conformance.core.errors import ContinuityError, UnreachableError
from continuity_conformance.core.run_options import Settings
from continuity_conformance.core.urls import public_url
from continuity_conformance.core.verdicts import Result, RunVerdict, Verdict, run_verdict, undecided
from continuity_conformance.results.baseline import Baseline, KnownFailure
from continuity_conformance.results.gate import Gate, GateInput, judge
from continuity_conformance.suite.packs import Packs
from continuity_conformance.suite.release import ReleasedSpec
from continuity_spec import Requirement

NOT_SELECTED: Final = "not selected"
STOPPED: Final = "the run was stopped before this was decided"
OPEN: Final = "not decided yet when this was written: the run was going on"


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """What a report says about the target. Nothing secret in it."""

    name: str
    url: str
    header: str
    options: Mapping[str, str]
    offers: tuple[str, ...]
    observed: str  # "probe", "answers" or "nothing"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run as far as it went. `results` has each requirement of the release and the packs once, in their order."""

    settings: Settings
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
    gate: Gate
    baseline: Baseline
    selected: int

    @property
    def today(self) -> date:
        """The day that entries of the baseline are held against, the same wherever the run is looked at."""
        return self.started.date()


class Ledger:
    """Results are added as they come; `close` or `give_up` ends it, and `so_far` may be asked at any moment, from any thread."""

    def __init__(self, settings: Settings, release: ReleasedSpec, baseline: Baseline | None = None) -> None:
        self.settings = settings
        self.release = release
        self.baseline = baseline or Baseline()
        self.target = _unseen(settings.target)
        self._started = datetime.now(UTC)
        self._clock = time.monotonic()
        self._selected = frozenset(requirement.id for requirement in release.requirements)
        self._results: dict[str, Result] = {}

    def select(self, ids: Iterable[str]) -> None:
        self._selected = frozenset(ids)

    def add(self, result: Result) -> None:
        """Book a result. The first word counts: what was reported on the terminal is what is written."""
        self._results.setdefault(result.id, result)

    def accepted(self, result: Result) -> KnownFailure | None:
        """Find the entry of the baseline that accepts this failure today."""
        entry = self.baseline.entries.get(result.id)
        failed = result.verdict is Verdict.FAIL
        return entry if entry and failed and not entry.expired(self._started.date()) else None

    def result(self, requirement_id: str) -> Result | None:
        return self._results.get(requirement_id)

    def close(self) -> Outcome:
        """Whatever is still open is not tested; what was not selected was not tested either."""
        return self._told(STOPPED, finished=self._selected <= self._results.keys())

    def so_far(self) -> Outcome:
        """Tell what is decided, in case that nobody will be able to tell later."""
        return self._told(OPEN, finished=False)

    def give_up(self, error: ContinuityError) -> Outcome:
        """There was no target, or no kit to speak of: nothing can be said about what is not decided yet."""
        results = tuple(
            self._results.get(entry.id) or undecided(entry, Verdict.ERROR, str(error))
            for entry in self.release.requirements
        )
        verdict = RunVerdict.UNREACHABLE if isinstance(error, UnreachableError) else RunVerdict.ERROR
        return self._outcome(results, verdict, Gate(error.exit_code, (str(error),)), finished=False)

    def _told(self, still_open: str, *, finished: bool) -> Outcome:
        decided = dict(self._results)
        results = tuple(decided.get(entry.id) or self._open(entry, still_open) for entry in self.release.requirements)
        own = [result for result in results if not result.pack]
        verdict = run_verdict(own, fail_on=self.settings.fail_on)
        if verdict is RunVerdict.CONFORMANT and not (finished and all(result.id in decided for result in own)):
            verdict = RunVerdict.INCOMPLETE
        broken = tuple(str(error) for error in self.release.packs.broken)
        judged = GateInput(results, self._selected, finished, self._started.date(), broken)
        return self._outcome(results, verdict, judge(judged, self.settings, self.baseline), finished=finished)

    def _open(self, requirement: Requirement, reason: str) -> Result:
        return undecided(requirement, Verdict.NOT_TESTED, reason if requirement.id in self._selected else NOT_SELECTED)

    def _outcome(self, results: tuple[Result, ...], verdict: RunVerdict, gate: Gate, *, finished: bool) -> Outcome:
        return Outcome(
            settings=self.settings,
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
            selected=len(self._selected),
        )


def _unseen(target: str) -> TargetFacts:
    """Say what is known of a target that nobody has spoken to yet. A password in the URL is not repeated."""
    if "://" not in target:
        return TargetFacts(target, "", "", {}, (), "nothing")
    url = public_url(target)
    return TargetFacts(url, url, "", {}, (), "nothing")
