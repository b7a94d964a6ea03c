"""`continuity check`: the whole suite against one target, with the verdict at the end."""

import argparse
import shutil
import sys
from typing import Final

from _pytest.mark.expression import Expression

from continuity_conformance.cli.options import add_run_options, add_target
from continuity_conformance.core import option_table
from continuity_conformance.core.errors import UsageError
from continuity_conformance.core.option_table import SELECTION
from continuity_conformance.core.run_options import RunOptions
from continuity_conformance.core.text import WIDTH
from continuity_conformance.pytest.launch import LaunchResult, launch
from continuity_conformance.terminal import github, summary
from continuity_conformance.terminal.events import RunEvents
from continuity_conformance.terminal.progress import ProgressDisplay

# No other plugins. In quiet mode the kit shows progress and verdict itself, and pytest shows nothing.
_QUIET: Final = ("--disable-plugin-autoload", "-p", "no:terminal", "--capture=no")
_VERBOSE: Final = ("--disable-plugin-autoload", "-v", "--no-header", "-rN")
_INTERRUPTED: Final = 130
_PYTEST_INTERRUPTED: Final = 2
_AROUND: Final = 2
"""Lines of the screen beside the summary: its title, and the prompt after it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target(parser)
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "-v", "--verbose", action="store_true", help="one line for each requirement, and every failure in full"
    )
    output.add_argument(
        "--json", action="store_true", help="progress and verdict as JSON for programs, one event on each line"
    )
    groups = add_run_options(parser)
    groups[SELECTION].add_argument("-k", dest="expression", metavar="EXPR", help="as in pytest: -k 'ECHO or DERIVE-04'")


def run(options: argparse.Namespace) -> int:
    run_options = RunOptions.read(option_table.values(options))
    selected = ["-k", _checked(options.expression)] if options.expression else []
    if options.json:
        return _with_events(run_options, [*_QUIET, *selected])
    if options.verbose:
        return _exit_code(launch(run_options, [*_VERBOSE, *selected]))
    launched = launch(run_options, [*_QUIET, *selected], progress=ProgressDisplay())
    _print_summary(launched)
    return _exit_code(launched)


def _with_events(run_options: RunOptions, arguments: list[str]) -> int:
    events = RunEvents()
    launched = launch(run_options, arguments, progress=events)
    events.end(launched.outcome, launched.error, _exit_code(launched), launched.report)
    return _exit_code(launched)


def _checked(expression: str) -> str:
    """The expression of -k. Raises UsageError unless it is one."""
    try:
        Expression.compile(expression)
    except SyntaxError as error:
        where = f"-k '{expression}'"
        raise UsageError(
            f"this is no expression: {error.msg}.", where=where, do="Write such as 'ECHO or DERIVE-04'."
        ) from None
    return expression


def _print_summary(launched: LaunchResult) -> None:
    outcome, report = launched.outcome, launched.report
    if outcome is None or launched.error is not None:
        return
    height = shutil.get_terminal_size().lines - _AROUND if sys.stdout.isatty() else None
    title = f" session continuity {outcome.release} ".center(WIDTH, "=")
    lines = github.lines(outcome, report) if github.is_here() else summary.lines(outcome, report, height)
    sys.stdout.writelines(f"{line}\n" for line in (title, *lines))


def _exit_code(launched: LaunchResult) -> int:
    """Shells know 130 as Ctrl-C. pytest ends with 2, which means usage here."""
    by_pytest = launched.interrupted and launched.exit_code == _PYTEST_INTERRUPTED
    return _INTERRUPTED if by_pytest else launched.exit_code
