"""`continuity serve`: the bundled server.

To the kit the server is another program: it is started, never imported.
"""

import argparse
import os
import sys
from typing import Final, NoReturn

_SERVER: Final = (sys.executable, "-m", "continuity_server")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None: the server reads its own arguments."""


def run(options: argparse.Namespace) -> NoReturn:
    """Replace this process by the server, so that signals and exit codes are the server's."""
    sys.stdout.flush()
    os.execv(sys.executable, [*_SERVER, *options.arguments])  # noqa: S606 # no shell, and the interpreter that runs already
