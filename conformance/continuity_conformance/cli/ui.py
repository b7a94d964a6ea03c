"""`continuity ui`: a page in the browser that examines a server and runs the suite on it."""

import argparse
import sys

from continuity_conformance.cli.options import add_options
from continuity_conformance.core.option_table import port
from continuity_conformance.terminal.output import say
from continuity_conformance.ui.serve import serve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = """\
Prints the address of the page, which has a token in it, and serves it on
127.0.0.1 until Ctrl-C. A key that is typed into the page goes to the target only.
Reports are kept in the user's cache folder, so that runs can be compared.

  continuity ui
  continuity ui --target http://127.0.0.1:8080 --profile my.yaml --open
"""
    parser.add_argument("--port", type=port, default=0, metavar="N", help="default: any free port")
    parser.add_argument(
        "--open", action=argparse.BooleanOptionalAction, default=False, help="open the page in the browser"
    )
    parser.add_argument("--target", default="", metavar="URL|NAME", help="fill in this target")
    add_options(parser, "profile")


def run(options: argparse.Namespace) -> int:
    profile = str(options.profile.resolve()) if options.profile is not None else ""
    serve(options.port, options.target, profile, browser=options.open, say=_say)
    return 0


def _say(line: str) -> None:
    """At once, also into a pipe: whoever started the page waits for its address."""
    say(line)
    sys.stdout.flush()
