"""The command `continuity`: reads its arguments, calls a subcommand, and ends with its exit code.

Whatever is wrong with the arguments, the profile or the target ends in one line on stderr; a traceback is a bug of the kit.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Final, cast

from continuity_conformance.cli import baseline, check, defects, doctor, fuzz, plugins, spec
from continuity_conformance.cli import report as reports
from continuity_conformance.cli import run as single
from continuity_conformance.cli import serve as others
from continuity_conformance.core.errors import ContinuityError
from continuity_conformance.run.signals import Stopped
from continuity_spec import SpecError

_USAGE: Final = 2
_INTERRUPTED: Final = 130
_BROKEN_PIPE: Final = 141

_ABOUT: Final = "Checks whether a server that keeps conversations keeps the Session Continuity spec."
_START: Final = """\
to get going:
  continuity check                            the bundled server, from start to verdict
  continuity check http://127.0.0.1:8080      a server that is already running
  continuity doctor URL                       what it is, and what can be tested
  continuity run DERIVE-04 --target URL       one requirement, with all that was said
  continuity fuzz --minutes 10                requests and sequences that nobody thought of
  continuity spec show DERIVE-04              what it demands, and why

exit codes:
  0 conformant   1 not conformant   2 usage   3 target unreachable
  4 kit error    5 incomplete (something that counts was not tested)
"""

Command = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _called(arguments)
        sys.stdout.flush()
    except ContinuityError as error:
        return _complain(str(error), error.exit_code)
    except SpecError as error:
        return _complain(str(error), _USAGE)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Stopped as stopped:
        return stopped.exit_code
    except BrokenPipeError:
        # The reader has gone (`| head`). Python would complain once more when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    return code


def _called(arguments: list[str]) -> int:
    # Before argparse, so that `continuity serve --help` is the server's own.
    if arguments[:1] == ["serve"]:
        others.serve(arguments[1:])
    options = build_parser().parse_args(arguments)
    return cast("Command", options.command)(options)


def _complain(message: str, exit_code: int) -> int:
    sys.stderr.write(f"continuity: {message}\n")
    return exit_code


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="continuity", description=_ABOUT, epilog=_START, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"continuity {version('session-continuity')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, about, add_arguments, command in _COMMANDS:
        own = commands.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
        add_arguments(own)
        own.set_defaults(command=command)
    return parser


_COMMANDS: Final[tuple[tuple[str, str, Callable[[argparse.ArgumentParser], None], Command], ...]] = (
    ("check", "check a target against the whole release", check.add_arguments, check.check),
    (
        "doctor",
        "say what a server is, what can be tested on it, and write a profile",
        doctor.add_arguments,
        doctor.doctor,
    ),
    ("run", "run single requirements, with the whole transcript", single.add_arguments, single.run),
    ("fuzz", "search with requests and sequences that nobody thought of", fuzz.add_arguments, fuzz.fuzz),
    (
        "baseline",
        "write a first file of known failures from the results of a run",
        baseline.add_arguments,
        baseline.baseline,
    ),
    ("report", "make every format of a report again from results.json", reports.report_arguments, reports.report),
    (
        "checklist",
        "print what to build and to ask, ticked from results",
        reports.checklist_arguments,
        reports.checklist,
    ),
    ("compare", "lay runs side by side, and tell what broke", reports.compare_arguments, reports.compare),
    ("plugins", "list the targets and packs that are installed", plugins.add_arguments, plugins.command),
    ("spec", "list, show or lint the requirements", spec.add_arguments, spec.spec),
    (
        "serve",
        "start the bundled server (its own options: continuity serve --help)",
        others.no_arguments,
        others.serve_without_arguments,
    ),
    ("model", "start the probe model alone", others.model_arguments, others.model),
    (
        "defects",
        "tell what the bundled server can be broken by, and what fails then",
        defects.add_arguments,
        defects.command,
    ),
)
