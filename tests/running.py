"""Bundled servers as processes of their own, for tests of the kit against a server that is already running."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONTINUITY = str(Path(sys.executable).with_name("continuity"))
FAILS = "DERIVE-04"
"""What the defective server fails, and nothing else of DERIVE."""


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    command = [sys.executable, "-m", "continuity_server", "--port", "0", "--db", ":memory:", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().removeprefix("listening on ").strip()
        finally:
            server.terminate()
