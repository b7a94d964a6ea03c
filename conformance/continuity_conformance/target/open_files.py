"""How many files and connections a process of the target has open, as /proc shows them."""

from contextlib import suppress
from pathlib import Path
from typing import Final

from continuity_conformance.core.failure import Untested

_PROC: Final = Path("/proc")
_GROUP: Final = 2
"""The position of the process group in /proc/PID/stat, after the name of the command."""


def open_files(group: int) -> int:
    """The open files and connections of all processes of a group. The kit starts every target in a group of its own. Raises Untested without /proc."""
    if not (_PROC / str(group) / "fd").is_dir():
        raise Untested("this system does not show the open files of a process (/proc)")
    return sum(_open_in(process) for process in _PROC.glob("[0-9]*") if _group_of(process) == group)


def _group_of(process: Path) -> int:
    with suppress(OSError):
        return int((process / "stat").read_text().rpartition(")")[2].split()[_GROUP])
    return 0


def _open_in(process: Path) -> int:
    with suppress(OSError):
        return sum(1 for _ in (process / "fd").iterdir())
    return 0
