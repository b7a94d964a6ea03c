"""`continuity serve` and `continuity model`: the bundled server and the probe model.

The server is another program to the kit: it is started, never imported.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

_SERVER: Final = (sys.executable, "-m", "continuity_server")


def serve(arguments: Sequence[str]) -> NoReturn:
    """Become the server, so that signals and exit codes are its own."""
    sys.stdout.flush()
    os.execv(sys.executable, [*_SERVER, *arguments])  # noqa: S606 # no shell, and the interpreter that runs already


def serve_without_arguments(_: argparse.Namespace) -> NoReturn:
    serve([])


def no_arguments(_: argparse.ArgumentParser) -> None:
    """Take none: the server reads its own."""


def model_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=0, metavar="N", help="default: any free port")


def model(options: argparse.Namespace) -> int:
    from continuity_conformance.probe import server as probe  # noqa: PLC0415

    probe.serve(options.port)
    return 0
