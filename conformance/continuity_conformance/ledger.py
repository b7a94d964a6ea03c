"""The ledger of a run: what is decided about each requirement of the release, and how the run ended.

It books; it decides nothing about the target. Knows neither pytest nor HTTP.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from continuity_conformance.errors import ContinuityError, UnreachableError
from continuity_conformance.release import ReleasedSpec
from continuity_conformance.run import TargetFacts
from continuity_conformance.settings import Settings
from continuity_conformance.verdicts import Result, RunVerdict, Verdict, run_verdict, undecided
from continuity_spec import Requirement

NOT_SELECTED: Final = "not selected"
STOPPED: Final = "the run was stopped before this was decided"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that is over. `results` has each requirement of the release once, in its order."""

    settings: Settings
    release: str
    target: TargetFacts
    started: datetime
    seconds: float
    results: tuple[Result, ...]
    verdict: RunVerdict
    complete: bool
    """Whether all of the release was selected, and the run went to its end."""


class Ledger:
    """Results are added as they come; `close` or `give_up` ends it."""

    def __init__(self, settings: Settings, release: ReleasedSpec) -> None:
        self.settings = settings
        self.release = release
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

    def result(self, requirement_id: str) -> Result | None:
        return self._results.get(requirement_id)

    def close(self) -> Outcome:
        """Whatever is still open is not tested; what was not selected was not tested either."""
        results = tuple(self._results.get(entry.id) or self._open(entry) for entry in self.release.requirements)
        verdict = run_verdict(results, fail_on=self.settings.fail_on)
        complete = len(self._results) == len(results)
        if verdict is RunVerdict.CONFORMANT and not complete:
            verdict = RunVerdict.INCOMPLETE
        return self._outcome(results, verdict, complete=complete)

    def give_up(self, error: ContinuityError) -> Outcome:
        """There was no target, or no kit to speak of: nothing can be said about any requirement."""
        results = tuple(
            self._results.get(entry.id) or undecided(entry, Verdict.ERROR, str(error))
            for entry in self.release.requirements
        )
        unreachable = isinstance(error, UnreachableError)
        return self._outcome(results, RunVerdict.UNREACHABLE if unreachable else RunVerdict.ERROR, complete=False)

    def _open(self, requirement: Requirement) -> Result:
        reason = STOPPED if requirement.id in self._selected else NOT_SELECTED
        return undecided(requirement, Verdict.NOT_TESTED, reason)

    def _outcome(self, results: tuple[Result, ...], verdict: RunVerdict, *, complete: bool) -> Outcome:
        return Outcome(
            settings=self.settings,
            release=self.release.name,
            target=self.target,
            started=self._started,
            seconds=time.monotonic() - self._clock,
            results=results,
            verdict=verdict,
            complete=complete,
        )


def _unseen(target: str) -> TargetFacts:
    """Say what is known of a target that nobody has spoken to yet. A password in the URL is not repeated."""
    parts = urlsplit(target)
    if not parts.scheme:
        return TargetFacts(target, "", "", {}, (), "nothing")
    url = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    return TargetFacts(url, url, "", {}, (), "nothing")
