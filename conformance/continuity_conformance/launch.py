"""Starts the suite's session: the one way into it, for both commands.

First the quick questions (can the profile be read, does anything answer?), then pytest. What can be known in a second is said in one line.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from continuity_conformance import results
from continuity_conformance.errors import ContinuityError, UsageError
from continuity_conformance.ledger import Ledger, Outcome
from continuity_conformance.pytest_plugin import SUITE, Request
from continuity_conformance.release import newest
from continuity_conformance.run import reach
from continuity_conformance.selection import select
from continuity_conformance.settings import Settings, cache_folder
from continuity_conformance.suite_session import SuiteSession
from continuity_spec import Level, SpecError


@dataclass(frozen=True, slots=True)
class Ending:
    """How a launch ended. `outcome` is None where nothing was run (`--collect-only`, a wrong argument)."""

    exit_code: int
    outcome: Outcome | None
    interrupted: bool = False


def launch_from_pytest(request: Request, config: pytest.Config) -> int:
    """`pytest --target …`: the user's own arguments, in the folder that they were given in."""
    settings = Settings(
        target=request.target,
        profile=Path(request.profile) if request.profile else None,
        fail_on=Level(request.fail_on),
        report=Path(request.report) if request.report else None,
        words=request.words,
    )
    # xdist would only multiply the load on the target: scenarios already run side by side.
    workers = ["-n0"] if config.pluginmanager.hasplugin("xdist") else []
    only_looks = any(getattr(config.option, name, None) for name in _LOOKS)
    return launch(settings, _before_end_of_options(request.own, workers), looks=only_looks).exit_code


_LOOKS = ("collectonly", "markers", "showfixtures", "show_fixtures_per_test", "cacheshow")
"""Options that look at the suite and need no target."""


def _before_end_of_options(own: Sequence[str], last: Sequence[str]) -> list[str]:
    """Put options last, so that they count; behind `--` they would be none."""
    end = own.index("--") if "--" in own else len(own)
    return [*own[:end], *last, *own[end:]]


def launch(settings: Settings, arguments: Sequence[str], *, looks: bool = False) -> Ending:
    """Run the suite. `looks`: nothing is asked of the target."""
    ledger: Ledger | None = None
    try:
        ledger = Ledger(settings, newest())
        selected = _checked(ledger, looks=looks)
    except ContinuityError as error:
        return _refuse(error, ledger)
    session = SuiteSession(ledger, selected, looks=looks)
    with _without_addopts():
        code = pytest.main([*_inner_arguments(settings, arguments), *arguments], plugins=[session])
    return Ending(int(code), session.outcome, session.interrupted)


def _checked(ledger: Ledger, *, looks: bool) -> frozenset[str]:
    settings, requirements = ledger.settings, ledger.release.requirements
    selected = select(settings.words or [each.id for each in requirements], requirements)
    if not looks:
        if settings.report is not None:
            results.prepare(settings.report)
        _reach(settings)
    return selected


def _reach(settings: Settings) -> None:
    try:
        reach(settings.target, settings.profile)
    except SpecError as trouble:
        raise UsageError(f"{trouble.what}.", where=trouble.where, do=trouble.remedy) from trouble


def _refuse(error: ContinuityError, ledger: Ledger | None) -> Ending:
    """One line, and a report that says the same: an older one in that folder would be taken for this run's."""
    sys.stderr.write(f"continuity: {error}\n")
    if ledger is None:
        return Ending(error.exit_code, None)
    outcome = ledger.give_up(error)
    if outcome.settings.report is not None and outcome.settings.report.is_dir():
        results.write(outcome, outcome.settings.report)
    return Ending(error.exit_code, outcome)


def _inner_arguments(settings: Settings, arguments: Sequence[str]) -> list[str]:
    here = Path.cwd()
    given = ["-c", str(SUITE / "pytest.ini"), f"--rootdir={here}", f"--confcutdir={SUITE}"]
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
