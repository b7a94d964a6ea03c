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

from continuity_conformance.core.errors import ContinuityError, UsageError
from continuity_conformance.core.run_options import RunOptions, cache_folder
from continuity_conformance.pytest.options import SUITE, SuiteRequest
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
from continuity_spec import SpecError


@dataclass(frozen=True, slots=True)
class Ending:
    """How a launch ended. `outcome` is None where nothing was run (`--collect-only`, a wrong argument)."""

    exit_code: int
    outcome: Outcome | None
    interrupted: bool = False
    error: ContinuityError | None = None
    """Why nothing, or nothing more, could be said about the target. It was told on stderr."""
    report: Path | None = None


def launch_from_pytest(request: SuiteRequest, config: pytest.Config) -> int:
    """`pytest --target …`: the user's own arguments, in the user's folder."""
    # xdist would only multiply the load on the target: scenarios already run side by side.
    workers = ["-n0"] if config.pluginmanager.hasplugin("xdist") else []
    only_looks = any(getattr(config.option, name, None) for name in _LOOKS)
    run_options = RunOptions.read(request.values, request.words)
    return launch(run_options, _before_end_of_options(request.arguments, workers), looks=only_looks).exit_code


_LOOKS = ("collectonly", "markers", "showfixtures", "show_fixtures_per_test", "cacheshow")
"""Options that look at the suite and need no target."""


def _before_end_of_options(own: Sequence[str], last: Sequence[str]) -> list[str]:
    """Put options last, so that they count; behind `--` they would be none."""
    end = own.index("--") if "--" in own else len(own)
    return [*own[:end], *last, *own[end:]]


def launch(
    run_options: RunOptions, arguments: Sequence[str], *, looks: bool = False, progress: Progress | None = None
) -> Ending:
    """Run the suite. `looks`: nothing is asked of the target."""
    with stoppable():
        try:
            return _launched(run_options, arguments, looks=looks, progress=progress)
        except Stopped as stopped:
            # Before pytest's session began: results.json, if one was asked for, says that nothing was decided.
            return Ending(stopped.exit_code, None, interrupted=True)


def _launched(run_options: RunOptions, arguments: Sequence[str], *, looks: bool, progress: Progress | None) -> Ending:
    ledger: Ledger | None = None
    try:
        ledger = Ledger(run_options, released(run_options.release) if run_options.release else newest())
        selected = _checked(ledger, looks=looks)
    except ContinuityError as error:
        return _refuse(error, ledger)
    session = SuiteSession(ledger, selected, looks=looks, progress=progress)
    with _without_addopts():
        code = pytest.main([*_inner_arguments(run_options, arguments), *arguments], plugins=[session])
    return Ending(session.signal_code or int(code), session.outcome, session.interrupted, session.error, session.report)


def _checked(ledger: Ledger, *, looks: bool) -> frozenset[str]:
    """Find out what is wrong with the arguments and the target, before anything is run."""
    options, requirements = ledger.run_options, ledger.release.requirements
    selected = select(options.words or [each.id for each in requirements], requirements)
    selected &= in_areas(options.areas, requirements)
    try:
        if options.baseline is not None:
            ledger.baseline = load_baseline(options.baseline, requirements)
        if not looks:
            _prepare(ledger)
            reach(options.target, options.profile)
    except SpecError as trouble:
        raise UsageError(f"{trouble.what}.", where=trouble.where, do=trouble.remedy) from trouble
    return selected


def _prepare(ledger: Ledger) -> None:
    """From the first moment results.json is this run's: nothing is decided yet, and it says so."""
    folder = ledger.run_options.report
    if folder is not None:
        results.prepare(folder)
        files.forget(folder)
        results.write(ledger.so_far(), folder)


def _refuse(error: ContinuityError, ledger: Ledger | None) -> Ending:
    """One line, and a report that says the same: an older one in that folder would be taken for this run's."""
    if ledger is not None:
        error = Redactor(tuple(url_secrets(ledger.run_options.target))).error(error)
    sys.stderr.write(f"continuity: {error}\n")
    if github.is_here():
        sys.stdout.write(f"{github.complaint(str(error))}\n")
    if ledger is None:
        return Ending(error.exit_code, None, error=error)
    outcome = ledger.give_up(error)
    if outcome.run_options.report is not None and outcome.run_options.report.is_dir():
        with suppress(ContinuityError):  # that it cannot be written is what was just said, or matters less
            files.write(results.write(outcome, outcome.run_options.report), outcome.run_options.report)
    return Ending(error.exit_code, outcome, error=error)


def _inner_arguments(run_options: RunOptions, arguments: Sequence[str]) -> list[str]:
    here = Path.cwd()
    given = ["-c", str(SUITE / "pytest.ini"), f"--rootdir={here}", f"--confcutdir={SUITE}"]
    given += [
        "-p",
        "no:unraisableexception",
    ]  # it collects garbage five times at the end: a second of a run that took three
    if not any("no:cacheprovider" in argument for argument in arguments):
        given += ["-o", f"cache_dir={cache_folder(here, run_options.target)}"]
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
