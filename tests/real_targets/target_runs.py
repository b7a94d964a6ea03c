"""Run a real target, and watch which addresses it connects to.

These tests install the targets (hundreds of MB, once). `make targets` runs them; `make test` does not.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from processes import processes_with

from continuity_conformance.core.verdicts import Result
from continuity_conformance.run.session import Run
from continuity_conformance.target.resolve import resolve
from continuity_spec import load_spec

HERMES = f"hermes=={os.environ.get('CONTINUITY_HERMES_VERSION', '0.19.0')}"
TARGETS = (
    HERMES,
    "azure-agentserver==2.3.0",
    "letta==0.32.18",
    "mastra==1.71.0",
    "nanobot==0.3.5",
    "ogx==1.5.0",
    "openclaw==2026.9.6",
    "openhands==1.58.0",
)

_EVERY_SECONDS: Final = 0.02


def play(target: str, ids: Sequence[str]) -> dict[str, Result]:
    requirements = [each for each in load_spec().requirements if each.id in ids]
    with Run(resolve(target), requirements) as run:
        return {each.id: run.result(each.id) for each in requirements}


@contextmanager
def peers(words: str) -> Iterator[set[str]]:
    """The addresses, as the kernel writes them, that all processes with these words talk to by TCP and UDP in the meantime.

    They are looked up fifty times a second. Children are found too, whatever became of their parents: they inherit the words.
    """
    seen: set[str] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_EVERY_SECONDS):
            seen.update(_peers(processes_with(words)))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield seen
    finally:
        over.set()
        watching.join()


def _peers(pids: Sequence[int]) -> set[str]:
    sockets = {_link(handle) for pid in pids for handle in Path(f"/proc/{pid}/fd").glob("*")}
    lines = [line.split() for table in ("tcp", "tcp6", "udp", "udp6") for line in _lines(Path("/proc/net", table))]
    return {fields[2].rpartition(":")[0] for fields in lines if f"socket:[{fields[9]}]" in sockets}


def _link(handle: Path) -> str:
    with suppress(OSError):
        return str(handle.readlink())
    return ""


def _lines(table: Path) -> list[str]:
    return table.read_text().splitlines()[1:] if table.exists() else []
