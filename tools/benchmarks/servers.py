"""Starts the servers that are measured, each in a process of its own, and reads what they cost the machine."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
YARDSTICK: Final = Path(__file__).with_name("yardstick.py")
_STOP_SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs."""

    port: int
    pid: int

    def cpu_seconds(self) -> float:
        """The time that all threads of the server have had a core. Waiting, for the disk or for a core, does not count."""
        tasks = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def memory_bytes(self) -> int:
        """What the server holds in memory that is its own: pages of files do not count."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        anonymous = next(line for line in lines if line.startswith("RssAnon:"))
        return int(anonymous.split()[1]) * 1024


@contextmanager
def reference(database: Path, *arguments: str, source: Path = ROOT) -> Iterator[Server]:
    """The reference server of this checkout, or of another one, with its built-in model."""
    command = [sys.executable, "-m", "continuity_server", "--port", "0", "--db", str(database), *arguments]
    with _running(command, {"PYTHONPATH": str(source / "reference_server")}) as server:
        yield server


@contextmanager
def yardstick(*arguments: str) -> Iterator[Server]:
    with _running([sys.executable, str(YARDSTICK), *arguments], {}) as server:
        yield server


@contextmanager
def _running(command: Sequence[str], environment: dict[str, str]) -> Iterator[Server]:
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, **environment}
    ) as process:
        assert process.stdout is not None, "its output is a pipe"
        try:
            yield Server(int(process.stdout.readline().rpartition(":")[2]), process.pid)
        finally:
            process.terminate()
            process.wait(_STOP_SECONDS)
