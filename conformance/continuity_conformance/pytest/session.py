"""The suite's session: the pytest plugin of the inner run.

It connects the target's run with pytest's run: opens the one when the other starts, reports each result as pytest's items, and ends both with the verdict.
The run books the results; this module only reads them.
"""

import sys
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest

from continuity_conformance.core.errors import ContinuityError, KitError, UnreachableError, UsageError
from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.pytest.items import RequirementItem, ResultText, Suite
from continuity_conformance.pytest.options import SUITE, SUITE_PLUGIN
from continuity_conformance.report import files
from continuity_conformance.results.ledger import Ledger, RunOutcome
from continuity_conformance.results.one_line import headline
from continuity_conformance.results.write import write
from continuity_conformance.run.heartbeat import Heartbeat, InterimResults, Listener
from continuity_conformance.run.session import Run
from continuity_conformance.run.signals import Stopped
from continuity_conformance.target.resolve import ResolvedTarget
from continuity_conformance.terminal import github, summary
from continuity_conformance.terminal.progress import RunProgress
from continuity_spec import Requirement
from continuity_spec.errors import nearest, suggestion

_STATUS = {
    Verdict.NOT_APPLICABLE: ("not applicable", "-", ("NOT APPLICABLE", {"cyan": True})),
    Verdict.NOT_TESTED: ("not tested", "?", ("NOT TESTED", {"yellow": True})),
    Verdict.FAIL: ("warned", "w", ("WARNED", {"yellow": True})),
}
_KNOWN = ("known", "k", ("KNOWN", {"yellow": True}))


class SuiteSession:
    """Registered in the inner run only. `outcome` is set at its end; it stays None without a `target` (`--collect-only`)."""

    def __init__(
        self,
        ledger: Ledger,
        selected: frozenset[str],
        target: ResolvedTarget | None,
        *,
        progress: RunProgress | None = None,
    ) -> None:
        # pytest registers a plugin object under this name, and the installed plugin looks for it.
        self.__name__ = SUITE_PLUGIN
        self.outcome: RunOutcome | None = None
        self.interrupted = False
        self.signal_code = 0
        self.error: ContinuityError | None = None
        """Why the target could not be judged."""
        self.closing_error: ContinuityError | None = None
        """What failed after the results were decided: stopping a server, writing the report."""
        self.report: Path | None = None
        self._ledger = ledger
        self._selected = selected
        self._target = target
        self._progress = progress
        self._run: Run | None = None
        self._heartbeat: Heartbeat | None = None
        self._foreign_failures = 0
        self._fence = github.Fence() if github.is_here() and progress is None else None

    # Collection

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> None:
        early_config.known_args_namespace.file_or_dir = [str(SUITE)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Other arguments name requirements; pytest would take them for files."""
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

    # The run

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Open the run, unless collecting failed. True means that nothing is left to do for pytest."""
        if self._target is None or session.testsfailed:
            return None
        requirements = [item.requirement for item in session.items if isinstance(item, RequirementItem)]
        self._ledger.select(each.id for each in requirements)
        if not requirements and (expression := session.config.getoption("keyword")):
            self.error = self._no_match(expression)
            return True
        self._run = Run(self._target, requirements, self._ledger.run_options.budget, self._ledger)
        try:
            self._run.open()
        except ContinuityError as error:
            self.error = error
            return True
        if self._fence is not None:
            _write_line(session.config, self._fence.begin())
        self._start_heartbeat(requirements)
        return None

    def _no_match(self, expression: str) -> UsageError:
        """Nothing would be tested, which nobody means."""
        known = [name for each in self._ledger.release.requirements for name in (each.area, each.id)]
        if expression.upper() in known:
            hint = "The other options leave it out: drop --class, --area or --release."
        elif nearest(expression, known):
            hint = suggestion(expression, known)
        else:
            hint = "Name areas or ids: 'ECHO or DERIVE-04'."
        return UsageError("this matches no requirement.", where=f"-k '{expression}'", do=hint)

    def _start_heartbeat(self, requirements: list[Requirement]) -> None:
        assert self._run is not None
        folder = self._ledger.run_options.report
        listeners: list[Listener] = [InterimResults(self._ledger, folder)] if folder is not None else []
        if self._progress is not None:
            self._progress.start(requirements, self._run.plays)
            listeners.append(self._progress)
        self._heartbeat = Heartbeat(self._ledger, listeners)
        self._heartbeat.start()

    def _decide(self, requirement: Requirement) -> Result:
        assert self._run is not None
        try:
            return self._run.result(requirement.id)
        except UnreachableError as error:
            # The target died. pytest stops after this item, which has no result.
            self.error = error
            pytest.exit(error.what)
        except ContinuityError as error:
            return self._run.fail(requirement, str(error))

    # Reports

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if isinstance(item, RequirementItem) and report.when != "teardown":
            if item.result is not None:
                self._describe(report, item, item.result)
            elif call.excinfo is not None and self._run is not None:
                self._run.fail(item.requirement, f"the kit failed: {call.excinfo.exconly()}")
        return report

    def _describe(self, report: pytest.TestReport, item: RequirementItem, result: Result) -> None:
        """Turn a report of pytest into the requirement's. An error is reported in the set-up, everything else in the call."""
        final = report.when == "call" or result.verdict is Verdict.ERROR
        # The time in which it waited for other scenarios is not the requirement's own.
        report.duration = result.seconds if final else 0.0
        if not final:
            return
        if result.verdict is Verdict.ERROR:
            # pytest asks an item for its text only in the call; in the set-up it would show a traceback of the kit.
            report.longrepr = ResultText(result, *item.place)
        elif result.verdict is Verdict.FAIL and not self._counts(result):
            report.outcome = "skipped"
            report.wasxfail = headline(result)
        elif report.skipped:
            report.longrepr = (*item.place, f"Skipped: {result.reason or result.verdict.spoken}")

    def _counts(self, failed: Result) -> bool:
        return self._ledger.counts(failed) and self._ledger.accepted(failed) is None

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

    # The end

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self.interrupted = self.error is None and excinfo.errisinstance((KeyboardInterrupt, Stopped))
        self.signal_code = excinfo.value.exit_code if isinstance(excinfo.value, Stopped) else 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self._target is None:
            return
        try:
            self._close_run()
        finally:
            self._conclude(session, exitstatus)

    def _conclude(self, session: pytest.Session, exitstatus: int) -> None:
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
        try:
            self._run.close()
        except ContinuityError as error:
            self.closing_error = error

    def _write_report(self, outcome: RunOutcome) -> None:
        folder = outcome.run_options.report
        if folder is None:
            return
        try:
            self.report = write(outcome, folder)
            self.report = files.write(self.report, folder)[0]
        except ContinuityError as error:
            self.closing_error = error

    def _exit_code(self, outcome: RunOutcome) -> int:
        if self._foreign_failures:
            return pytest.ExitCode.TESTS_FAILED
        error = self.error or self.closing_error
        return error.exit_code if error is not None else int(outcome.gate.exit_code)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._fence is not None:
            terminalreporter.line(self._fence.end())
        if self.outcome is None or self.error is not None:
            return
        terminalreporter.section(f"session continuity {self.outcome.release}")
        lines = github.lines if github.is_here() else summary.lines
        for line in lines(self.outcome, self.report):
            terminalreporter.line(line)

    def pytest_unconfigure(self) -> None:
        """Report last, in one line each, what went wrong in the kit or the set-up."""
        for error in (self.error, self.closing_error):
            if error is not None:
                sys.stderr.write(f"continuity: {error}\n")
                sys.stdout.write(f"{github.error_annotation(str(error))}\n" if github.is_here() else "")


def _write_line(config: pytest.Config, line: str) -> None:
    """A line of its own in the middle of pytest's output."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        reporter.ensure_newline()
        reporter.line(line)


def _requirement_id(report: pytest.TestReport) -> str:
    """The requirement that a report is about; empty for a foreign item."""
    return next((str(value) for name, value in report.user_properties if name == "requirement"), "")
