"""`continuity model`: the probe model alone, for a server that is started by hand."""

import argparse
import errno
import re

from continuity_conformance.core.errors import UsageError
from continuity_conformance.core.option_table import port
from continuity_conformance.probe import server as probe
from continuity_conformance.probe.marks import DEFAULT_PATTERN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=port, default=0, metavar="N", help="default: any free port")
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
    try:
        probe.serve(options.port, options.summary)
    except OSError as error:
        if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
            raise
        why = "another program uses this port" if error.errno == errno.EADDRINUSE else "this port needs more rights"
        where = f"127.0.0.1 port {options.port}"
        raise UsageError(f"the model cannot listen: {why}.", where=where, do="Choose another with --port.") from None
    return 0
