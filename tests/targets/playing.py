"""What the tests of real targets share. They install what they need (hundreds of MB, once) and are run by `make targets`, not by `make test`."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from continuity_conformance.run import Run
from continuity_conformance.verdicts import Result
from continuity_spec import load

HERMES = f"hermes=={os.environ.get('CONTINUITY_HERMES_VERSION', '0.19.0')}"
TARGETS = (HERMES, "nanobot==0.3.5", "ogx==1.5.0", "openclaw==2026.9.6")


def play(target: str, ids: Sequence[str]) -> dict[str, Result]:
    requirements = [each for each in load().requirements if each.id in ids]
    with Run(target, None, requirements) as run:
        return {each.id: run.result(each.id) for each in requirements}


def peers(pid: int) -> set[str]:
    """The addresses at the other end of a process' TCP connections, as the kernel writes them."""
    sockets = {_link(handle) for handle in Path(f"/proc/{pid}/fd").glob("*")}
    lines = [line.split() for table in ("tcp", "tcp6") for line in _lines(Path(f"/proc/{pid}/net/{table}"))]
    return {fields[2].rpartition(":")[0] for fields in lines if f"socket:[{fields[9]}]" in sockets}


def _link(handle: Path) -> str:
    with suppress(OSError):
        return str(handle.readlink())
    return ""


def _lines(table: Path) -> list[str]:
    return table.read_text().splitlines()[1:]
