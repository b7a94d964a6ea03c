"""Start and stop the process of a target.

Each process has its own folder and a port that no other run uses. It is ready when its health path answers.
"""

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import aiohttp

from continuity_conformance.core.errors import NotStartedError, UsageError
from continuity_conformance.core.text import cut
from continuity_conformance.core.work import current_work
from continuity_conformance.target.isolated_environment import isolated_environment
from continuity_conformance.target.port import Port
from continuity_conformance.target.profile import Process, Profile
from continuity_conformance.target.warm_python import ForkedProcess, WarmPython, can_fork, warm_python

_POLL_SECONDS: Final = 0.02
_LAST_LINES: Final = 12
_LAST_LINES_OF_START: Final = 60
"""A traceback of a server that does not start is longer than what is of use beside a failure."""
_LONGEST_LINE: Final = 500
_PROCESSES: Final = Path("/proc")
"""Only Linux has it. Elsewhere the first process of the system asks for every exit code."""
_LAST_BYTES: Final = 16_384
_SHOWN: Final = 200


class StartedProcess:
    """A process of the target. It keeps its port and its folder when it restarts."""

    def __init__(
        self, profile: Profile, probe_url: str, folder: "tempfile.TemporaryDirectory[str] | None" = None
    ) -> None:
        assert profile.process is not None, "the kit starts only a target whose profile says how"
        self._profile = profile
        self._process = profile.process
        # A child process that outlives the target may still write here while the folder is removed.
        self._folder = folder or tempfile.TemporaryDirectory(prefix="continuity-", ignore_cleanup_errors=True)
        self._port = Port()
        self._probe_url = probe_url
        self._running: asyncio.subprocess.Process | ForkedProcess | None = None
        self.output = Path(self._folder.name, f"continuity-output-{self._port.number}.log")
        """The output of the process. In a file, because a pipe would have to be read, and its end would wait for child processes."""
        self.start_seconds = 0.0

    @property
    def url(self) -> str:
        """The address of the API, without /v1."""
        return self._root + self._process.base

    @property
    def _root(self) -> str:
        return f"http://127.0.0.1:{self._port.number}"

    @property
    def runs(self) -> bool:
        return self._running is not None and self._running.returncode is None

    @property
    def pid(self) -> int:
        return self._running.pid if self._running else 0

    def file(self, template: str) -> Path:
        return Path(self._filled(template))

    def own_file(self, template: str, setting: str) -> Path:
        """A file that the kit may replace. Raises UsageError for one outside the target's folder; links are followed."""
        file = self.file(template)
        if Path(self._folder.name).resolve() not in file.resolve().parents:
            raise UsageError(
                "this file is not in the folder that the kit made for the target, so the kit does not replace it.",
                where=f"{setting}: {template}",
                do="Name a file that the target keeps in {folder}, such as {folder}/responses.db.",
            )
        return file

    def twin(self) -> "StartedProcess":
        """Another process that uses the same folder."""
        return StartedProcess(self._profile, self._probe_url, self._folder)

    def previous_release(self) -> "StartedProcess":
        """The previous release of the target, in a new folder."""
        return StartedProcess(replace(self._profile, process=self._profile.previous), self._probe_url)

    def upgrade_of(self, previous: "StartedProcess") -> "StartedProcess":
        """Return this release in the folder of the previous one."""
        return StartedProcess(self._profile, self._probe_url, previous._folder)  # noqa: SLF001 - of its own kind

    def without_keys(self, *, single_user: bool = False) -> "StartedProcess":
        """The same target without any key configured, for several people or for one, in a new folder."""
        own, keys = self._process, [key for key in self._profile.principals.values() if key]
        start, env = (own.single_user, own.single_user_env) if single_user else (own.keyless, own.keyless_env)
        if env is None:
            env = {name: value for name, value in own.env.items() if not any(key in value for key in keys)}
        process = replace(own, start=start, env=env)
        profile = replace(self._profile, process=process, principals={}, identities={})
        return StartedProcess(profile, self._probe_url)

    async def start(self) -> None:
        work, began = current_work(), time.monotonic()
        work.begin()
        await self.launch()
        await self._ready(self._process.start[0])
        self.start_seconds = time.monotonic() - began
        if self._process.warm_up:
            await self._warm_up(self._process.warm_up)
        work.starts.add(time.monotonic() - began)

    async def launch(self) -> None:
        """Start the process without waiting until it is ready."""
        command = [self._filled(word) for word in self._process.start]
        self._write_files()
        try:
            if self._process.preload and can_fork(command):
                self._running = await self._fork(command)
            else:
                self._running = await self._spawn(command)
        except OSError as error:
            raise NotStartedError(
                f"The target cannot be started: {error}.", where=command[0], do="Check process.start."
            ) from None

    async def _spawn(self, command: Sequence[str]) -> asyncio.subprocess.Process:
        with self.output.open("wb") as output:
            return await asyncio.create_subprocess_exec(
                *command,
                env=self._environment(),
                cwd=self._folder.name,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )

    async def _fork(self, command: Sequence[str]) -> ForkedProcess:
        origin = _origin(self._process)
        return await origin.fork(command, self._environment(), self._folder.name, str(self.output))

    def _write_files(self) -> None:
        """Write the files that do not exist yet. After a restart, the target's changes to them stay."""
        for name, text in self._process.files.items():
            path = Path(self._folder.name, name)
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(self._filled(text), encoding="utf-8")

    def _environment(self) -> dict[str, str]:
        own = {name: self._filled(value) for name, value in self._process.env.items()}
        return {**(isolated_environment(self._folder.name) if self._process.isolated else os.environ), **own}

    async def _warm_up(self, seconds: float) -> None:
        """Send one turn, so that no scenario has to wait for what the target loads in its first turn."""
        headers = self._profile.headers_of("alice")
        path, turn = self._profile.first_turn("Warm up.")
        reason = f"no answer in {seconds:g} s"
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), aiohttp.ClientSession(headers=headers) as session:
                reason = await _failure_of_turn(session, self.url + path, turn)
        if reason:
            raise NotStartedError(
                f"The target's first turn did not succeed: {reason}.",
                where=self.url,
                do=f"Its output:\n  {self.last_output}",
            )

    @property
    def last_output(self) -> str:
        """The last lines of its output, for error messages."""
        return self._lines(0, _LAST_LINES_OF_START).replace("\n", "\n  ") or "(nothing)"

    def output_since(self, written: int) -> str:
        """The last lines of its output after this many bytes. A start empties the output: then everything counts."""
        return self._lines(written, _LAST_LINES)

    def _lines(self, start: int, count: int) -> str:
        if not self.output.exists():  # not started yet, or the folder is gone because the run was stopped
            return ""
        with self.output.open("rb") as output:
            size = output.seek(0, os.SEEK_END)
            output.seek(max(start if start <= size else 0, size - _LAST_BYTES))
            lines = output.read().decode("utf-8", "replace").splitlines()
        return "\n".join(cut(line.rstrip(), _LONGEST_LINE) for line in lines[-count:])

    async def restart(self) -> None:
        await self.end()
        await self.start()

    async def kill(self) -> None:
        await self.end(signal.SIGKILL)
        await self.start()

    def kill_at_once(self) -> None:
        """Send SIGKILL without waiting for anything. `kill` then waits for the end, and starts the target again."""
        self.send_signal(signal.SIGKILL)

    def send_signal(self, how: signal.Signals) -> None:
        """Send a signal to the process and its children, without waiting for anything."""
        if self.runs:
            _signal_group(self.pid, how)

    async def has_ended(self) -> bool:
        """Wait for the process to end by itself, for at most `stop_seconds`. False if it still runs."""
        assert self._running is not None, "a process that was not started cannot end"
        with suppress(TimeoutError):
            async with asyncio.timeout(self._process.stop_seconds):
                await self._running.wait()
        return not self.runs

    async def stop(self) -> None:
        await self.end_and_release_port()
        self._folder.cleanup()

    async def end_and_release_port(self) -> None:
        """End the process for good. The folder stays, because other processes may use it."""
        await self.end()
        self._port.release()

    def _filled(self, word: str) -> str:
        return (
            word.replace("{port}", str(self._port.number))
            .replace("{folder}", self._folder.name)
            .replace("{probe}", self._probe_url)
        )

    async def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the process with all its children. One that still shuts down would answer in place of the next start, or write beside it."""
        running = self._running
        if running is None or running.returncode is not None:
            return
        _signal_group(running.pid, how)
        try:
            async with asyncio.timeout(self._process.stop_seconds):
                await running.wait()
                while _group_lives(running.pid):  # noqa: ASYNC110 - nothing tells when the children of a child end
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            _signal_group(running.pid, signal.SIGKILL)
            await running.wait()

    async def _ready(self, command: str) -> None:
        try:
            headers = self._profile.request_headers("")
            async with asyncio.timeout(self._process.seconds), aiohttp.ClientSession(headers=headers) as session:
                while not await _answers(session, self._root + self._process.ready):
                    self._must_run(command)
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            where = f"{self._root}{self._process.ready}"
            raise NotStartedError(
                f"The target did not become ready in {self._process.seconds:g} s.",
                where=where,
                do=f"Its output:\n  {self.last_output}",
            ) from None

    def _must_run(self, command: str) -> None:
        assert self._running is not None
        if self._running.returncode is not None:
            raise NotStartedError(
                f"The target ended during its start, with exit code {self._running.returncode}.",
                where=command,
                do=f"Its output:\n  {self.last_output}",
            )


def prepare_fork(process: Process | None) -> None:
    """Let the interpreter that a target is forked from import its modules already now, where there is one."""
    if process is not None and process.preload and can_fork(process.start):
        _origin(process)


def _origin(process: Process) -> WarmPython:
    # A fork gets its whole environment itself. The origin needs what counts while modules are imported: neither folders of
    # PYTHONPATH nor keys, which differ from run to run.
    environment = {
        name: value
        for name, value in process.env.items()
        if name != "PYTHONPATH" and not name.startswith("CONTINUITY_")
    }
    return warm_python(process.preload, tuple(environment.items()))


async def _failure_of_turn(session: aiohttp.ClientSession, url: str, turn: object) -> str:
    """Send a turn. Returns the reason if it fails, else an empty text. A redirect is not followed: the request carries a key."""
    try:
        async with session.post(url, json=turn, allow_redirects=False) as response:
            text = await response.text()
            return "" if response.status < 300 else f"{response.status} {text[:_SHOWN]}"  # noqa: PLR2004
    except (aiohttp.ClientError, OSError) as error:
        return str(error) or type(error).__name__


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    """Whether the target is up. A redirect is an answer too, and is not followed: the request carries the profile's headers."""
    try:
        async with session.get(url, allow_redirects=False) as response:
            return response.status < 500  # noqa: PLR2004
    except (aiohttp.ClientError, OSError):
        return False


def _group_lives(pid: int) -> bool:
    """Whether a process of the group still runs. One that has ended may stay listed, where nobody asks for its exit code."""
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return not _PROCESSES.is_dir() or any(_is_alive_in(pid, stat) for stat in _PROCESSES.glob("[0-9]*/stat"))


def _is_alive_in(group: int, stat: Path) -> bool:
    try:
        state, _, its_group, *_ = stat.read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return False  # it has ended meanwhile
    return int(its_group) == group and state not in "ZX"


def _signal_group(pid: int, how: signal.Signals) -> None:
    """Signal the whole process group, because a target may have child processes. The kit created the group for this process."""
    try:
        os.killpg(pid, how)
    except ProcessLookupError:
        return
