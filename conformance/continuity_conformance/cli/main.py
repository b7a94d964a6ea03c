"""The command `continuity`: reads its arguments, calls one command, and ends with its exit code.

What is wrong with the arguments, the profile or the target ends in one line on stderr; a traceback is a bug of the kit.

Each command is a module of this package, or of a folder in it, with its name, which has `add_arguments(parser)` and `run(options)`. Only the module of the command that
was asked for is imported, so that `continuity --help` is quick and the modules can import what they need at their top.
"""

import argparse
import atexit
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from typing import Final, Protocol, cast

from continuity_conformance.core.errors import ContinuityError
from continuity_conformance.run.signals import Stopped
from continuity_spec import SpecError

_USAGE: Final = 2
_INTERRUPTED: Final = 130
_BROKEN_PIPE: Final = 141

_ABOUT: Final = "Check whether a server that keeps conversations follows Session Continuity."
_START: Final = """\
to get going:
  continuity check                            the bundled server
  continuity check http://127.0.0.1:8080      a server that is already running
  continuity doctor URL                       what it is, and what can be tested
  continuity ui                               both on a page in the browser
  continuity run DERIVE-04 --target URL       one requirement (-v: transcript)
  continuity fuzz --minutes 10                search with generated requests
  continuity torture --kills 100              kill it again and again under load
  continuity spec show DERIVE-04              what it demands, and why

exit codes:
  0 conformant   1 not conformant   2 usage   3 target unreachable
  4 kit error    5 incomplete (something that counts was not tested)
"""

COMMANDS: Final[Mapping[str, str]] = {
    "check": "check a target against the whole release",
    "doctor": "examine a server, list what can be tested, write a profile",
    "ui": "do both on a page in the browser, and watch the verdicts",
    "run": "run single requirements and print each failure in full",
    "fuzz": "search for failures with generated requests and sequences",
    "torture": "kill a target again and again under load, and audit what is left",
    "baseline": "write a first file of known failures from the results of a run",
    "diagnose": "find the causes of the failures of a run, and write an issue for each",
    "report": "make every format of a report again from results.json",
    "checklist": "print what to build and what to review, ticked from results",
    "compare": "compare runs and list regressions",
    "submit": "check results and write the files that list them beside others",
    "plugins": "list the installed targets and packs",
    "spec": "list, show or lint the requirements",
    "explain": "print all about a requirement, as Markdown or JSON",
    "serve": "start the bundled server (options: continuity serve --help)",
    "model": "start the probe model alone",
    "completion": "print a script that completes commands in a shell",
    "defects": "list the defects of the bundled server, and what fails on each",
}
"""Every command, and its line in the help."""
_FOLDERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("baseline", "report", "checklist", "compare", "submit"), "results_files"),
    **dict.fromkeys(("plugins", "spec", "explain", "defects", "completion"), "reference"),
}
"""The folders of those commands that are not in this one."""


class Command(Protocol):
    """A module of this package that is a command."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, options: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command, and return the exit code. Without arguments of its own it is the whole program, and ends at once after that."""
    return _program() if argv is None else _exit_code(argv)


def _exit_code(argv: Sequence[str]) -> int:
    try:
        code = _run(list(argv))
        sys.stdout.flush()
    except ContinuityError as error:
        return _report(error, error.exit_code)
    except SpecError as error:
        return _report(error, _USAGE)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Stopped as stopped:
        return stopped.exit_code
    except BrokenPipeError:
        # The reader has gone (`| head`). Without this, Python reports it again when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    return code


def _program() -> int:
    """Run the command of the command line. At its end, Python would free each object of a run, one by one, which takes seconds."""
    codes = [1]
    atexit.register(_end, codes)  # the first to be registered is the last to be called
    try:
        codes.append(_exit_code(sys.argv[1:]))
    except SystemExit as ending:
        codes.append(ending.code if isinstance(ending.code, int) else int(ending.code is not None))
        raise
    return codes[-1]


def _end(codes: Sequence[int]) -> None:
    with suppress(OSError):  # the reader may have gone
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(codes[-1])


def _run(arguments: list[str]) -> int:
    name = arguments[0] if arguments and arguments[0] in COMMANDS else None
    # The server reads its own arguments, `--help` too.
    if name == "serve":
        return module_of(name).run(argparse.Namespace(arguments=arguments[1:]))
    options = parser_for(name).parse_args(arguments)
    assert name is not None, "without a command argparse ends the process"
    return module_of(name).run(options)


def module_of(name: str) -> Command:
    """Import the module of a command."""
    place = ".".join(filter(None, ("continuity_conformance.cli", _FOLDERS.get(name), name)))
    return cast("Command", importlib.import_module(place))


def _report(error: Exception, exit_code: int) -> int:
    sys.stderr.write(f"continuity: {error}\n")
    return exit_code


def parser_for(name: str | None) -> argparse.ArgumentParser:
    """The parser of the whole command line; only the command of this name has its arguments."""
    parser = argparse.ArgumentParser(
        prog="continuity", description=_ABOUT, epilog=_START, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"continuity {version('session-continuity')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for each, about in COMMANDS.items():
        own = commands.add_parser(each, help=about, description=f"{about[0].upper()}{about[1:]}.")
        if each == name:
            module_of(name).add_arguments(own)
    return parser
