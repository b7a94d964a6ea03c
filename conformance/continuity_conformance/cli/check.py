"""`continuity check`: the whole suite against one target, with the verdict at the end."""

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from continuity_conformance.cli.budget import add_budget_arguments, budget_of
from continuity_conformance.cli.target import add_target
from continuity_spec import Level

if TYPE_CHECKING:
    from continuity_conformance.pytest.launch import Ending

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
        "--report", type=Path, metavar="DIR", help="write the report in every format to this folder (default: nothing)"
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="a line for each requirement, and each failure in full"
    )
    _add_selection(parser.add_argument_group("a part of the release (which is never conformant)"))
    _add_gate(parser.add_argument_group("what counts"))
    add_budget_arguments(parser)


def _add_selection(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--area", action="append", default=[], metavar="AREA", help="only SLUG, or SLUG,ECHO; may be given again"
    )
    group.add_argument("-k", dest="expression", metavar="EXPR", help="as in pytest: -k 'ECHO or DERIVE-04'")


def _add_gate(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--release", metavar="NAME", help="of the spec (default: the newest, and drafts)")
    group.add_argument(
        "--fail-on",
        type=str.upper,
        choices=("MUST", "SHOULD"),
        default="MUST",
        help="the level whose failures count (default: MUST; a failed SHOULD warns)",
    )
    group.add_argument(
        "--baseline",
        type=Path,
        metavar="FILE",
        help="known failures with reason and date: they do not count until then; one that passes again does",
    )
    group.add_argument(
        "--accept-untested",
        action="store_true",
        help="exit code 0 instead of 5 where something could not be tested; the verdict stays incomplete",
    )


def check(options: argparse.Namespace) -> int:
    # Imported here because they bring pytest and the whole kit along.
    from continuity_conformance.core.run_options import Settings  # noqa: PLC0415
    from continuity_conformance.pytest.launch import as_areas, launch  # noqa: PLC0415
    from continuity_conformance.terminal.progress import Progress  # noqa: PLC0415

    settings = Settings(
        target=options.target,
        profile=options.profile,
        fail_on=Level(options.fail_on),
        report=options.report,
        areas=as_areas(options.area),
        release=options.release,
        baseline=options.baseline,
        accept_untested=options.accept_untested,
        budget=budget_of(options),
    )
    selected = ["-k", options.expression] if options.expression else []
    if options.verbose:
        return _exit_code(launch(settings, [*_VERBOSE, *selected]))
    ending = launch(settings, [*_QUIET, *selected], progress=Progress())
    _tell(ending)
    return _exit_code(ending)


def _tell(ending: "Ending") -> None:
    from continuity_conformance.terminal import github, summary  # noqa: PLC0415 - only at the end of a run

    if ending.outcome is None or ending.error is not None:
        return
    height = shutil.get_terminal_size().lines - _AROUND if sys.stdout.isatty() else None
    title = f" session continuity {ending.outcome.release} ".center(summary.WIDTH, "=")
    here = github.is_here()
    told = github.lines(ending.outcome, ending.report) if here else summary.lines(ending.outcome, ending.report, height)
    sys.stdout.writelines(f"{line}\n" for line in (title, *told))


def _exit_code(ending: "Ending") -> int:
    """A shell knows 130 as Ctrl-C; pytest says 2, which is usage here."""
    pytests_own = ending.interrupted and ending.exit_code == _PYTEST_INTERRUPTED
    return _INTERRUPTED if pytests_own else ending.exit_code
