"""`continuity check`: the whole suite against one target, with the verdict at the end."""

import argparse
import shutil
import sys
from typing import TYPE_CHECKING, Final

from continuity_conformance.cli.options import add_run_options, add_target
from continuity_conformance.core import option_table
from continuity_conformance.core.option_table import SELECTION

if TYPE_CHECKING:
    from continuity_conformance.pytest.launch import LaunchResult

# No plugin of others has a say. Quietly, the kit shows progress and verdict by itself, and pytest shows nothing.
_QUIET: Final = ("--disable-plugin-autoload", "-p", "no:terminal", "--capture=no")
_VERBOSE: Final = ("--disable-plugin-autoload", "-v", "--no-header", "-rN")
_INTERRUPTED: Final = 130
_PYTEST_INTERRUPTED: Final = 2
_AROUND: Final = 2
"""Lines of a screen that are not the summary's: its title, and the prompt after it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target(parser)
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="one line for each requirement, and every failure in full"
    )
    groups = add_run_options(parser)
    groups[SELECTION].add_argument("-k", dest="expression", metavar="EXPR", help="as in pytest: -k 'ECHO or DERIVE-04'")


def check(options: argparse.Namespace) -> int:
    # Imported here because they bring pytest and the whole kit along.
    from continuity_conformance.core.run_options import RunOptions  # noqa: PLC0415
    from continuity_conformance.pytest.launch import launch  # noqa: PLC0415
    from continuity_conformance.terminal.progress import ProgressDisplay  # noqa: PLC0415

    run_options = RunOptions.read(option_table.values(options))
    selected = ["-k", options.expression] if options.expression else []
    if options.verbose:
        return _exit_code(launch(run_options, [*_VERBOSE, *selected]))
    launched = launch(run_options, [*_QUIET, *selected], progress=ProgressDisplay())
    _tell(launched)
    return _exit_code(launched)


def _tell(launched: "LaunchResult") -> None:
    from continuity_conformance.terminal import github, summary  # noqa: PLC0415 - only at the end of a run

    if launched.outcome is None or launched.error is not None:
        return
    height = shutil.get_terminal_size().lines - _AROUND if sys.stdout.isatty() else None
    title = f" session continuity {launched.outcome.release} ".center(summary.WIDTH, "=")
    here = github.is_here()
    told = (
        github.lines(launched.outcome, launched.report)
        if here
        else summary.lines(launched.outcome, launched.report, height)
    )
    sys.stdout.writelines(f"{line}\n" for line in (title, *told))


def _exit_code(launched: "LaunchResult") -> int:
    """A shell knows 130 as Ctrl-C; pytest says 2, which is usage here."""
    pytests_own = launched.interrupted and launched.exit_code == _PYTEST_INTERRUPTED
    return _INTERRUPTED if pytests_own else launched.exit_code
