"""`continuity check`: the whole suite against one target, with the verdict at the end."""

import argparse
from pathlib import Path
from typing import Final

from continuity_spec import Level

_QUIET: Final = ("--disable-plugin-autoload", "-qq", "--no-header", "--tb=no", "-rN")
"""No plugin of others has a say, and failures have one line each in the summary."""
_VERBOSE: Final = ("--disable-plugin-autoload", "-v", "--no-header", "-rN")
_INTERRUPTED: Final = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target",
        nargs="?",
        default="reference",
        metavar="TARGET",
        help="the URL of a running server, or the name of one that a plugin starts (default: reference)",
    )
    parser.add_argument("--profile", type=Path, metavar="FILE", help="what the URL alone cannot tell about the target")
    parser.add_argument(
        "--fail-on",
        type=str.upper,
        choices=("MUST", "SHOULD"),
        default="MUST",
        help="the level whose failures count (default: MUST; a failed SHOULD warns)",
    )
    parser.add_argument(
        "--report", type=Path, metavar="DIR", help="write results.json to this folder (default: nothing)"
    )
    parser.add_argument("-k", dest="expression", metavar="EXPR", help="a part, as in pytest: -k 'ECHO or DERIVE-04'")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="a line for each requirement, and each failure in full"
    )


def check(options: argparse.Namespace) -> int:
    # Imported here because they bring pytest and the whole kit along.
    from continuity_conformance.launch import launch  # noqa: PLC0415
    from continuity_conformance.settings import Settings  # noqa: PLC0415

    settings = Settings(
        target=options.target, profile=options.profile, fail_on=Level(options.fail_on), report=options.report
    )
    form = _VERBOSE if options.verbose else _QUIET
    ending = launch(settings, [*form, *(["-k", options.expression] if options.expression else [])])
    return _INTERRUPTED if ending.interrupted else ending.exit_code
