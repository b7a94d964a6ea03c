"""Starts the suite's session: the one way into it, for both commands.

First the quick questions (can the profile be read, does the address answer?), then pytest. What can be known within a second is reported in one line.
"""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from continuity_conformance.core.errors import ContinuityError, UnreachableError, UsageError
from continuity_conformance.core.run_options import RunOptions, cache_folder
from continuity_conformance.pytest.options import SUITE, SuiteRequest
from continuity_conformance.pytest.session import SuiteSession
from continuity_conformance.report import files
from continuity_conformance.results import write as results
from continuity_conformance.results.baseline import load_baseline
from continuity_conformance.results.ledger import Ledger, RunOutcome
from continuity_conformance.results.redaction import Redactor, url_secrets
from continuity_conformance.run.first_answer import reach
from continuity_conformance.run.signals import Stopped, stoppable
from continuity_conformance.suite.release import newest, released
from continuity_conformance.suite.select import in_areas, in_classes, select
from continuity_conformance.target.process import prepare_fork
from continuity_conformance.target.resolve import BUNDLED, ResolvedTarget, resolve
from continuity_conformance.terminal import github
from continuity_conformance.terminal.progress import RunProgress
from continuity_spec import SpecError

_OFFLINE: Final = ("collectonly", "markers", "showfixtures", "show_fixtures_per_test", "cacheshow")
"""Options of pytest that only list something and need no target."""
_PAUSE: Final = 0.25
"""Seconds between two tries to reach a target that is still starting."""


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """How a launch ended. `outcome` is None if nothing was run (`--collect-only`, a wrong argument)."""

    exit_code: int
    outcome: RunOutcome | None
    interrupted: bool = False
    error: ContinuityError | None = None
    """Why nothing, or nothing more, could be decided about the target. It is already on stderr."""
    report: Path | None = None


def launch_from_pytest(request: SuiteRequest, config: pytest.Config) -> int:
    """`pytest --target …`: the user's own arguments, in the user's folder."""
    # xdist would only multiply the load on the target: scenarios already run side by side.
    workers = ["-n0"] if config.pluginmanager.hasplugin("xdist") else []
    offline = any(getattr(config.option, name, None) for name in _OFFLINE)
    run_options = RunOptions.read(request.values, request.words)
    return launch(run_options, _before_end_of_options(request.arguments, workers), offline=offline).exit_code


def _before_end_of_options(own: Sequence[str], last: Sequence[str]) -> list[str]:
    """Put options last, so that they win, but before `--`, after which nothing is an option."""
    end = own.index("--") if "--" in own else len(own)
    return [*own[:end], *last, *own[end:]]


def launch(
    run_options: RunOptions, arguments: Sequence[str], *, offline: bool = False, progress: RunProgress | None = None
) -> LaunchResult:
    """Run the suite. `offline`: the target is not contacted."""
    with stoppable():
        try:
            return _launch(run_options, arguments, offline=offline, progress=progress)
        except Stopped as stopped:
            # Before pytest's session began: results.json, if there is one, says that nothing was decided.
            return LaunchResult(stopped.exit_code, None, interrupted=True)


def _launch(
    run_options: RunOptions, arguments: Sequence[str], *, offline: bool, progress: RunProgress | None
) -> LaunchResult:
    ledger: Ledger | None = None
    try:
        bundled = None if offline else _bundled(run_options)
        release = released(run_options.release) if run_options.release else newest()
        ledger = Ledger(run_options, release.narrowed(run_options.classes))
        selected = _selected(ledger)
        target = None if offline else _reached(ledger, bundled)
    except ContinuityError as error:
        return _refuse(error, ledger)
    session = SuiteSession(ledger, selected, target, progress=progress)
    with _without_addopts():
        code = pytest.main([*_inner_arguments(run_options, arguments), *arguments], plugins=[session])
    return LaunchResult(
        session.signal_code or int(code), session.outcome, session.interrupted, session.error, session.report
    )


def _selected(ledger: Ledger) -> frozenset[str]:
    """The ids that the arguments name. Also reads the baseline, so that a mistake in it is found before the run."""
    options, requirements = ledger.run_options, ledger.release.requirements
    selected = select(options.words or [each.id for each in requirements], requirements)
    selected &= in_classes(options.classes, ledger.release) & in_areas(options.areas, requirements)
    if options.baseline is not None:
        with _as_usage_error():
            ledger.baseline = load_baseline(options.baseline, requirements)
    return selected


def _bundled(run_options: RunOptions) -> ResolvedTarget | None:
    """The bundled target, if it is the one that is asked for: it gets ready to start while the spec is read."""
    if run_options.target != BUNDLED or run_options.profile is not None:
        return None
    with suppress(ContinuityError):  # it comes again where there is a place to report it
        target = resolve(BUNDLED)
        prepare_fork(target.profile.process)
        return target
    return None


def _reached(ledger: Ledger, bundled: ResolvedTarget | None) -> ResolvedTarget:
    """Resolve the target, once for the whole run, and check that its address answers."""
    _prepare(ledger)
    with _as_usage_error():
        target = bundled or resolve(ledger.run_options.target, ledger.run_options.profile)
    _reach(target, ledger.run_options.wait)
    return target


def _reach(target: ResolvedTarget, seconds: float) -> None:
    """Check that the address takes connections. If there is time to wait, until it answers requests too, as a proxy takes connections for a server that still starts."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with suppress(UnreachableError):
            return reach(target, until_ready=True)
        time.sleep(min(_PAUSE, max(0.0, deadline - time.monotonic())))
    return reach(target)


@contextmanager
def _as_usage_error() -> Iterator[None]:
    """A mistake in a file that the user wrote is a usage error."""
    try:
        yield
    except SpecError as error:
        raise UsageError(f"{error.what}.", where=error.where, do=error.remedy) from error


def _prepare(ledger: Ledger) -> None:
    """Replace an earlier results.json right away: this run has decided nothing yet, and the file says so."""
    folder = ledger.run_options.report
    if folder is not None:
        results.prepare(folder)
        files.forget(folder)
        results.write(ledger.so_far(), folder)


def _refuse(error: ContinuityError, ledger: Ledger | None) -> LaunchResult:
    """Report the error in one line, and in the report folder, where an older report would be taken for this run's."""
    if ledger is not None:
        error = Redactor(tuple(url_secrets(ledger.run_options.target))).error(error)
    sys.stderr.write(f"continuity: {error}\n")
    if github.is_here():
        sys.stdout.write(f"{github.error_annotation(str(error))}\n")
    if ledger is None:
        return LaunchResult(error.exit_code, None, error=error)
    outcome = ledger.give_up(error)
    folder = outcome.run_options.report
    if folder is not None and folder.is_dir():
        with suppress(ContinuityError):  # if it cannot be written, that is the error just shown, or matters less
            files.write(results.write(outcome, folder), folder)
    return LaunchResult(error.exit_code, outcome, error=error)


def _inner_arguments(run_options: RunOptions, arguments: Sequence[str]) -> list[str]:
    here = Path.cwd()
    given = ["-c", str(SUITE / "pytest.ini"), f"--rootdir={here}", f"--confcutdir={SUITE}"]
    # This plugin collects garbage five times at the end, which takes a second of a run of three.
    given += ["-p", "no:unraisableexception"]
    if not any("no:cacheprovider" in argument for argument in arguments):
        given += ["-o", f"cache_dir={cache_folder(here, run_options.target)}"]
    return given


@contextmanager
def _without_addopts() -> Iterator[None]:
    """PYTEST_ADDOPTS is already among the arguments of `pytest`, and `continuity check` ignores it."""
    addopts = os.environ.pop("PYTEST_ADDOPTS", None)
    try:
        yield
    finally:
        if addopts is not None:
            os.environ["PYTEST_ADDOPTS"] = addopts
