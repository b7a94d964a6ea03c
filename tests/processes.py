"""Start the bundled server as a process, call the command `continuity` without a process, and find processes by their command, environment or folder."""

import io
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

from continuity_conformance.cli.main import main

CONTINUITY = str(Path(sys.executable).with_name("continuity"))
FAILS = "DERIVE-04"
"""The one requirement of DERIVE that the server with the defect derive-sha1 fails."""
STOPPING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""The signals that end a run."""


def started(command: Sequence[str], **how: Any) -> "subprocess.Popen[Any]":
    """Start a process that a test sends signals to. It ignores no signal, even if our parent does (nohup, `&` in a script)."""
    return subprocess.Popen(command, preexec_fn=_ignore_nothing, **how)  # noqa: PLW1509 - it takes no lock


def _ignore_nothing() -> None:
    for number in STOPPING:
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """Start the bundled server with these arguments, and give its address."""
    command = [sys.executable, "-m", "continuity_server", "--port", "0", "--db", ":memory:", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().removeprefix("listening on ").strip()
        finally:
            server.terminate()


def called(*arguments: str, encoding: str = "utf-8") -> subprocess.CompletedProcess[str]:
    """Call the command `continuity` in this process, which is faster, with standard streams like those of a process."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding, write_through=True) for _ in range(2)]
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        try:
            code = main(arguments)
        except SystemExit as end:  # argparse ends the process like this
            code = int(end.code or 0)
    output, errors = (stream.buffer.getvalue().decode(encoding) for stream in streams)
    return subprocess.CompletedProcess(arguments, code, output, errors)


def processes_with(words: str) -> list[int]:
    """The ids of the processes that have these words in their command or environment. Works on Linux only."""
    return [int(process.name) for process in Path("/proc").glob("[0-9]*") if words in _command_and_environment(process)]


def processes_in(folder: Path) -> list[int]:
    """The ids of the processes that work somewhere in this folder. Works on Linux only."""
    return [int(process.name) for process in Path("/proc").glob("[0-9]*") if folder in _folder(process).parents]


def _folder(process: Path) -> Path:
    with suppress(OSError):
        return (process / "cwd").readlink()
    return Path()


def _command_and_environment(process: Path) -> str:
    with suppress(OSError):
        return ((process / "cmdline").read_bytes() + (process / "environ").read_bytes()).decode("utf-8", "replace")
    return ""
