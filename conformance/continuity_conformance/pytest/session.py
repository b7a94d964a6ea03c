"""The suite's session: the pytest plugin of the inner run.

It brings the target's run and pytest's run together: opens the one when the other starts, books each result, and ends both with the verdict.
"""

import sys
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest

from continuity_conformance.core.errors import ContinuityError, KitError
from continuity_conformance.core.verdicts import Result, Verdict, by_review, undecided
from continuity_conformance.pytest.items import RequirementItem, ResultText, Suite
from continuity_conformance.pytest.options import SUITE, SUITE_PLUGIN
from continuity_conformance.report import files
from continuity_conformance.results.ledger import Ledger, Outcome
from continuity_conformance.results.one_line import headline
from continuity_conformance.results.write import write
from continuity_conformance.run.heartbeat import Heartbeat, Interim, Listener
from continuity_conformance.run.session import Run
from continuity_conformance.run.signals import Stopped
from continuity_conformance.target.resolve import ResolvedTarget
from continuity_conformance.terminal import github, summary
from continuity_conformance.terminal.progress import Progress
from continuity_spec import Requirement

_STATUS = {
    Verdict.NOT_APPLICABLE: ("not applicable", "-", ("NOT APPLICABLE", {"cyan": True})),
    Verdict.NOT_TESTED: ("not tested", "?", ("NOT TESTED", {"yellow": True})),
    Verdict.FAIL: ("warned", "w", ("WARNED", {"yellow": True})),
}
_KNOWN = ("known", "k", ("KNOWN", {"yellow": True}))


class SuiteSession:
    """Registered in the inner run only. `outcome` is there when that is over; None where pytest only looked (`--collect-only`)."""

    def __init__(
        self,
        ledger: Ledger,
        selected: frozenset[str],
        target: ResolvedTarget | None,
        *,
        progress: Progress | None = None,
    ) -> None:
        # pytest registers a plugin object under this name, and the installed plugin asks for it.
        self.__name__ = SUITE_PLUGIN
        self.outcome: Outcome | None = None
        self.interrupted = False
        self.signal_code = 0
        self.error: ContinuityError | None = None
        self.trouble: ContinuityError | None = None
        self.report: Path | None = None
        self._ledger = ledger
        self._selected = selected
        self._target = target
        self._progress = progress
        self._run: Run | None = None
        self._heartbeat: Heartbeat | None = None
        self._foreign_failures = 0
        self._fence = github.Fence() if github.is_here() and progress is None else None

    # What is collected

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> None:
        early_config.known_args_namespace.file_or_dir = [str(SUITE)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Whatever else stands on the command line names requirements; pytest would take it for files."""
        config.args = [str(SUITE)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        if path != SUITE:
            return None
        requirements = self._ledger.release.requirements
        suite: Suite = Suite.from_parent(parent, path=path, nodeid="", requirements=requirements, decide=self._decide)
        return suite

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left_out = [
            item for item in items if isinstance(item, RequirementItem) and item.requirement.id not in self._selected
        ]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item not in left_out]
        items.sort(key=lambda item: item.place_in_run if isinstance(item, RequirementItem) else 0)

    # How it runs

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Open the run, unless collecting failed. True means that there is nothing left to do for pytest."""
        if self._target is None or session.testsfailed:
            return None
        requirements = [item.requirement for item in session.items if isinstance(item, RequirementItem)]
        self._ledger.select(each.id for each in requirements)
        if not self._opened([each for each in requirements if each.manual is None]):
            return True
        if self._fence is not None:
            _say(session.config, self._fence.begin())
        self._start_heartbeat(requirements)
        return None

    def _opened(self, requirements: list[Requirement]) -> bool:
        if not requirements:
            return True
        assert self._target is not None
        try:
            self._run = Run(self._target, requirements, self._ledger.run_options.budget)
            self._run.open()
        except ContinuityError as error:
            self.error = error
            return False
        self._ledger.target = self._run.facts
        return True

    def _start_heartbeat(self, requirements: list[Requirement]) -> None:
        run, folder = self._run, self._ledger.run_options.report
        if run is None:
            return
        listeners: list[Listener] = [Interim(self._ledger, folder)] if folder is not None else []
        if self._progress is not None:
            self._progress.start(requirements)
            listeners.append(self._progress)
        manual = [by_review(each) for each in requirements if each.manual is not None]
        self._heartbeat = Heartbeat(lambda: [*manual, *run.decided()], listeners)
        self._heartbeat.start()

    def _decide(self, requirement: Requirement) -> Result:
        if requirement.manual is not None:
            return by_review(requirement)
        assert self._run is not None
        try:
            return self._run.result(requirement.id)
        except ContinuityError as error:
            return undecided(requirement, Verdict.ERROR, str(error))

    # What is reported

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if isinstance(item, RequirementItem) and report.when != "teardown":
            self._book(item, call, report)
        return report

    def _book(self, item: RequirementItem, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
        if item.result is None:
            if call.excinfo is not None:
                self._ledger.add(
                    undecided(item.requirement, Verdict.ERROR, f"the kit failed: {call.excinfo.exconly()}")
                )
            return
        result = item.result
        spoken = report.when == "call" or result.verdict is Verdict.ERROR
        # The waiting for other scenarios is not the requirement's own time.
        report.duration = result.seconds if spoken else 0.0
        if spoken:
            self._ledger.add(result)
            counts = self._ledger.run_options.gates(result.level) and self._ledger.accepted(result) is None
            _tell(report, item, result, counts=counts)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, tuple[str, Mapping[str, bool]]] | None:
        if not isinstance(report, pytest.TestReport) or not report.skipped:
            return None
        result = self._ledger.result(_requirement_id(report))
        if result is None:
            return None
        return _KNOWN if self._ledger.accepted(result) else _STATUS.get(result.verdict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._foreign_failures += report.failed and not _requirement_id(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._foreign_failures += report.failed

    # How it ends

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self.interrupted = excinfo.errisinstance((KeyboardInterrupt, Stopped))
        self.signal_code = excinfo.value.exit_code if isinstance(excinfo.value, Stopped) else 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self._target is None:
            return
        try:
            self._close_run()
        finally:
            self._settle(session, exitstatus)

    def _settle(self, session: pytest.Session, exitstatus: int) -> None:
        """Judge and write, whatever happened before."""
        if exitstatus == pytest.ExitCode.INTERNAL_ERROR and self.error is None:
            self.error = KitError("pytest ended with an internal error (above).", do="Please report it.")
        self.outcome = self._ledger.close() if self.error is None else self._ledger.give_up(self.error)
        self._write_report(self.outcome)
        github.write_summary(self.outcome)
        if not self.interrupted:
            session.exitstatus = self._exit_code(self.outcome)

    def _close_run(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.stop()
        if self._run is None:
            return
        for result in self._run.decided():
            self._ledger.add(result)
        try:
            self._run.close()
        except ContinuityError as error:
            self.trouble = error

    def _write_report(self, outcome: Outcome) -> None:
        if outcome.run_options.report is None:
            return
        try:
            self.report = write(outcome, outcome.run_options.report)
            self.report = files.write(self.report, outcome.run_options.report)[0]
        except ContinuityError as error:
            self.trouble = error

    def _exit_code(self, outcome: Outcome) -> int:
        if self._foreign_failures:
            return pytest.ExitCode.TESTS_FAILED
        trouble = self.error or self.trouble
        return trouble.exit_code if trouble is not None else int(outcome.gate.exit_code)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._fence is not None:
            terminalreporter.line(self._fence.end())
        if self.outcome is None or self.error is not None:
            return
        terminalreporter.section(f"session continuity {self.outcome.release}")
        told = github.lines if github.is_here() else summary.lines
        for line in told(self.outcome, self.report):
            terminalreporter.line(line)

    def pytest_unconfigure(self) -> None:
        """Say last, in one line each, what went wrong with the kit or the set-up."""
        for trouble in (self.error, self.trouble):
            if trouble is not None:
                sys.stderr.write(f"continuity: {trouble}\n")
                sys.stdout.write(f"{github.error_annotation(str(trouble))}\n" if github.is_here() else "")


def _say(config: pytest.Config, line: str) -> None:
    """On a line of its own, in the middle of what pytest shows."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        reporter.ensure_newline()
        reporter.line(line)


def _requirement_id(report: pytest.TestReport) -> str:
    """Name the requirement that a report is about; empty for a foreign item."""
    return next((str(value) for name, value in report.user_properties if name == "requirement"), "")


def _tell(report: pytest.TestReport, item: RequirementItem, result: Result, *, counts: bool) -> None:
    """Turn a report into what pytest has no word for."""
    if result.verdict is Verdict.ERROR:
        # pytest asks an item how it failed in its call only; in its set-up it would show a traceback of the kit.
        report.longrepr = ResultText(result, *item.place)
    elif result.verdict is Verdict.FAIL and not counts:
        report.outcome = "skipped"
        report.wasxfail = headline(result)
    elif report.skipped:
        report.longrepr = (*item.place, f"Skipped: {result.reason or result.verdict.spoken}")
