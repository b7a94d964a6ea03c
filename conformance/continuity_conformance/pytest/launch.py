"""Starts the suite's session: the one way into it, for both commands.

First the quick questions (can the profile be read, does anything answer?), then pytest. What can be known in a second is said in one line.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from continuity_conformance.core.budget import DEFAULT_EXAMPLES, DEFAULT_SEED, Budget
from continuity_conformance.core.errors import ContinuityError, UsageError
from continuity_conformance.core.run_options import Settings, cache_folder
from continuity_conformance.pytest.plugin import SUITE, Request
from continuity_conformance.pytest.session import SuiteSession
from continuity_conformance.report import files
from continuity_conformance.results import write as results
from continuity_conformance.results.baseline import load_baseline
from continuity_conformance.results.ledger import Ledger, Outcome
from continuity_conformance.results.redaction import Redactor, url_secrets
from continuity_conformance.run.session import reach
from continuity_conformance.run.signals import Stopped, stoppable
from continuity_conformance.suite.release import newest, released
from continuity_conformance.suite.select import in_areas, select
from continuity_conformance.terminal import github
from continuity_conformance.terminal.progress import Progress
from continuity_spec import Level, SpecError


@dataclass(frozen=True, slots=True)
class Ending:
    """How a launch ended. `outcome` is None where nothing was run (`--collect-only`, a wrong argument)."""

    exit_code: int
    outcome: Outcome | None
    interrupted: bool = False
    error: ContinuityError | None = None
    """Why nothing, or nothing more, could be said about the target. It was told on stderr."""
    report: Path | None = None


def launch_from_pytest(request: Request, config: pytest.Config) -> int:
    """`pytest --target …`: the user's own arguments, in the folder that they were given in."""
    settings = Settings(
        target=request.target,
        profile=Path(request.profile) if request.profile else None,
        fail_on=Level(request.fail_on),
        report=Path(request.report) if request.report else None,
        words=request.words,
        areas=as_areas(request.areas),
        release=request.release,
        baseline=Path(request.baseline) if request.baseline else None,
        accept_untested=request.accept_untested,
        budget=_budget(request),
    )
    # xdist would only multiply the load on the target: scenarios already run side by side.
    workers = ["-n0"] if config.pluginmanager.hasplugin("xdist") else []
    only_looks = any(getattr(config.option, name, None) for name in _LOOKS)
    return launch(settings, _before_end_of_options(request.own, workers), looks=only_looks).exit_code


def _budget(request: Request) -> Budget:
    if request.examples is not None and request.examples < 1:
        raise pytest.UsageError("--continuity-examples: a number of at least 1")
    return Budget(
        DEFAULT_EXAMPLES if request.examples is None else request.examples,
        DEFAULT_SEED if request.seed is None else request.seed,
    )


_LOOKS = ("collectonly", "markers", "showfixtures", "show_fixtures_per_test", "cacheshow")
"""Options that look at the suite and need no target."""


def _before_end_of_options(own: Sequence[str], last: Sequence[str]) -> list[str]:
    """Put options last, so that they count; behind `--` they would be none."""
    end = own.index("--") if "--" in own else len(own)
    return [*own[:end], *last, *own[end:]]


def as_areas(words: Sequence[str]) -> tuple[str, ...]:
    """`--area SLUG --area echo` and `--area slug,echo` are the same."""
    return tuple(area.strip().upper() for word in words for area in word.split(",") if area.strip())


def launch(
    settings: Settings, arguments: Sequence[str], *, looks: bool = False, progress: Progress | None = None
) -> Ending:
    """Run the suite. `looks`: nothing is asked of the target."""
    with stoppable():
        try:
            return _launched(settings, arguments, looks=looks, progress=progress)
        except Stopped as stopped:
            # Before pytest's session began: results.json, if one was asked for, says that nothing was decided.
            return Ending(stopped.exit_code, None, interrupted=True)


def _launched(settings: Settings, arguments: Sequence[str], *, looks: bool, progress: Progress | None) -> Ending:
    ledger: Ledger | None = None
    try:
        ledger = Ledger(settings, released(settings.release) if settings.release else newest())
        selected = _checked(ledger, looks=looks)
    except ContinuityError as error:
        return _refuse(error, ledger)
    session = SuiteSession(ledger, selected, looks=looks, progress=progress)
    with _without_addopts():
        code = pytest.main([*_inner_arguments(settings, arguments), *arguments], plugins=[session])
    return Ending(session.signal_code or int(code), session.outcome, session.interrupted, session.error, session.report)


def _checked(ledger: Ledger, *, looks: bool) -> frozenset[str]:
    """Find out what is wrong with the arguments and the target, before anything is run."""
    settings, requirements = ledger.settings, ledger.release.requirements
    selected = select(settings.words or [each.id for each in requirements], requirements)
    selected &= in_areas(settings.areas, requirements)
    try:
        if settings.baseline is not None:
            ledger.baseline = load_baseline(settings.baseline, requirements)
        if not looks:
            _prepare(ledger)
            reach(settings.target, settings.profile)
    except SpecError as trouble:
        raise UsageError(f"{trouble.what}.", where=trouble.where, do=trouble.remedy) from trouble
    return selected


def _prepare(ledger: Ledger) -> None:
    """From the first moment results.json is this run's: nothing is decided yet, and it says so."""
    folder = ledger.settings.report
    if folder is not None:
        results.prepare(folder)
        files.forget(folder)
        results.write(ledger.so_far(), folder)


def _refuse(error: ContinuityError, ledger: Ledger | None) -> Ending:
    """One line, and a report that says the same: an older one in that folder would be taken for this run's."""
    if ledger is not None:
        error = Redactor(tuple(url_secrets(ledger.settings.target))).error(error)
    sys.stderr.write(f"continuity: {error}\n")
    if github.is_here():
        sys.stdout.write(f"{github.complaint(str(error))}\n")
    if ledger is None:
        return Ending(error.exit_code, None, error=error)
    outcome = ledger.give_up(error)
    if outcome.settings.report is not None and outcome.settings.report.is_dir():
        with suppress(ContinuityError):  # that it cannot be written is what was just said, or matters less
            files.write(results.write(outcome, outcome.settings.report), outcome.settings.report)
    return Ending(error.exit_code, outcome, error=error)


def _inner_arguments(settings: Settings, arguments: Sequence[str]) -> list[str]:
    here = Path.cwd()
    given = ["-c", str(SUITE / "pytest.ini"), f"--rootdir={here}", f"--confcutdir={SUITE}"]
    given += [
        "-p",
        "no:unraisableexception",
    ]  # it collects garbage five times at the end: a second of a run that took three
    if not any("no:cacheprovider" in argument for argument in arguments):
        given += ["-o", f"cache_dir={cache_folder(here, settings.target)}"]
    return given


@contextmanager
def _without_addopts() -> Iterator[None]:
    """PYTEST_ADDOPTS is already among the arguments, or is none of ours."""
    addopts = os.environ.pop("PYTEST_ADDOPTS", None)
    try:
        yield
    finally:
        if addopts is not None:
            os.environ["PYTEST_ADDOPTS"] = addopts
