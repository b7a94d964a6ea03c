"""`continuity model`: the probe model alone, for a server that is started by hand."""

import argparse
import re

from continuity_conformance.core.errors import UsageError
from continuity_conformance.probe import server as probe
from continuity_conformance.probe.marks import DEFAULT_PATTERN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=0, metavar="N", help="default: any free port")
    parser.add_argument(
        "--summary",
        default=DEFAULT_PATTERN,
        metavar="PATTERN",
        help="a regular expression that is in the first or last message of every call that asks for a summary, and of no other; by default such calls are recognised",
    )


def run(options: argparse.Namespace) -> int:
    try:
        re.compile(options.summary)
    except re.error as error:
        raise UsageError(
            f"{options.summary!r} is no regular expression: {error}.",
            where="--summary",
            do="Put \\ before ( ) [ ] { } . * + ? |.",
        ) from None
    probe.serve(options.port, options.summary)
    return 0
