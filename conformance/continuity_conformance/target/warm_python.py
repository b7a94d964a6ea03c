"""Start a Python target in milliseconds: fork it from an interpreter that has already imported its modules.

To import aiohttp takes longer than most scenarios, and a run starts its target a hundred times. This module has both sides. The kit keeps one `WarmPython` for each
list of modules; it starts this file as a program, which imports them, and forks itself for each target. A forked target is a process like any other: it has its own
group, folder, environment and output, and can be killed. Its command line is that of the program, so arguments with keys do not appear in a process list.

`multiprocessing.forkserver` does the same for functions; it imports the main program of its parent into every child, which costs more than it saves here.
"""

import asyncio
import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, NoReturn

CAN_FORK: Final = hasattr(os, "pidfd_open")
"""Linux only: elsewhere the end of a process that is no child of ours cannot be awaited."""
_FIRST_OWN_DESCRIPTOR: Final = 3
_MOST_DESCRIPTORS: Final = 4096
_NOBODY_WAITS: Final = 1
_STATUS_BITS: Final = 0xFF
_UNKNOWN: Final = 255
"""The exit code of a fork if the process that could tell it is gone."""


class ForkedProcess:
    """A forked target, with the part of `asyncio.subprocess.Process` that the kit uses."""

    def __init__(self, pid: int, origin: "WarmPython") -> None:
        self.pid = pid
        self._origin = origin
        self._returncode: int | None = None
        self._descriptor = os.pidfd_open(pid)
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._descriptor, self._end)

    @property
    def returncode(self) -> int | None:
        return self._returncode

    async def wait(self) -> int:
        await self._ended.wait()
        assert self._returncode is not None
        return self._returncode

    def _end(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._returncode = self._origin.exit_code(self.pid)
        self._ended.set()


class WarmPython:
    """A Python process that has imported some modules, and forks itself on request. It ends with the kit."""

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str]) -> None:
        self._modules = modules
        self._process = subprocess.Popen(  # noqa: S603 - the kit's own program
            [sys.executable, __file__, *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        self._one_at_a_time = threading.Lock()
        self._is_used = False
        atexit.register(self._close)

    async def fork(
        self, command: Sequence[str], environment: Mapping[str, str], folder: str, output: str
    ) -> ForkedProcess:
        """Run `python -m MODULE ARGUMENTS` in a fork. The first call waits until the modules are imported."""
        order = {"command": command[2:], "environment": dict(environment), "folder": folder, "output": output}
        return ForkedProcess(await asyncio.to_thread(self._ask, order), self)

    def exit_code(self, pid: int) -> int:
        """The exit code of a fork that has ended; negative if a signal ended it."""
        try:
            return self._ask({"ended": pid})
        except OSError:
            return _UNKNOWN

    def _ask(self, order: Mapping[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._is_used = True
        with self._one_at_a_time:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        if not answer:
            raise OSError(f"the process that imports {', '.join(self._modules)} has ended")
        return int(answer)

    def _close(self) -> None:
        if not self._is_used:
            self._process.kill()  # nothing was forked, so nobody has to wait for its imports
        self._process.communicate()


def can_fork(command: Sequence[str]) -> bool:
    """Whether a command can be run in a fork: it must be `python -m MODULE …`, with the interpreter of the kit."""
    return CAN_FORK and tuple(command[:2]) == (sys.executable, "-m")


@lru_cache
def warm_python(modules: tuple[str, ...], environment: tuple[tuple[str, str], ...]) -> WarmPython:
    """The interpreter that has imported these modules, in an environment with these values beside the kit's own."""
    return WarmPython(modules, {**os.environ, **dict(environment)})


def main(modules: Sequence[str]) -> None:
    """Answer orders, one line each: fork and give the process id, or give the exit code of a fork that has ended."""
    for name in modules:
        importlib.import_module(name)
    gc.freeze()  # nothing of this is garbage: a collection in a fork would only copy its memory
    for line in sys.stdin.buffer:
        order = json.loads(line)
        answer = os.waitstatus_to_exitcode(os.waitpid(order["ended"], 0)[1]) if "ended" in order else os.fork()
        if answer == 0 and "ended" not in order:
            _become(order)
            return
        os.write(sys.stdout.fileno(), b"%d\n" % answer)


def _become(order: Mapping[str, Any]) -> None:
    """Run the target in this process, which is a fork."""
    try:
        _leave_the_origin(order["output"])
    except FileNotFoundError:
        os._exit(_NOBODY_WAITS)  # the run has ended and removed its folder
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    sys.path[:0] = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    module, *arguments = order["command"]
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        _end(_status(end.code))
    _end(0)


def _status(code: object) -> int:
    """The exit status of `sys.exit(code)`. Anything but a number is a last word, as in any Python process."""
    if code is None or isinstance(code, int):
        return int(code or 0) & _STATUS_BITS
    sys.stderr.write(f"{code}\n")
    return 1


def _end(status: int) -> NoReturn:
    """End this process without taking it apart.

    The usual end of an interpreter visits every object that it has, and so copies all the memory that a fork shares with its origin: that takes longer than the whole start.
    What a program wants done at its end is done: threads are waited for, functions of `atexit` are called, files are written.
    """
    threading._shutdown()  # type: ignore[attr-defined] # noqa: SLF001 - what an interpreter calls at its end
    atexit._run_exitfuncs()  # noqa: SLF001 - the same
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(status)


def _leave_the_origin(output: str) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.closerange(_FIRST_OWN_DESCRIPTOR, _MOST_DESCRIPTORS)
    nothing = os.open(os.devnull, os.O_RDONLY)
    written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for ours, standard in ((nothing, 0), (written, 1), (written, 2)):
        os.dup2(ours, standard)
    os.closerange(_FIRST_OWN_DESCRIPTOR, written + 1)


if __name__ == "__main__":
    main(sys.argv[1:])
