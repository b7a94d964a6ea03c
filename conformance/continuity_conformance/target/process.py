"""Processes of a target that the kit starts: each on a port that no other run has, in a folder of its own, ready when its health path answers."""

import asyncio
import os
import signal
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import aiohttp

from continuity_conformance.core.errors import NotStartedError, UsageError
from continuity_conformance.target.port import Port
from continuity_conformance.target.profile import Profile

_POLL_SECONDS: Final = 0.02
_LAST_LINES: Final = 12
_LAST_BYTES: Final = 16_384
_SHOWN: Final = 200
_CLOSED_PROXY: Final = "http://127.0.0.1:9"
"""Nobody listens there: what a target asks of the internet is refused at once."""
_NOBODY: Final = Path(__file__).with_name("no_authority.pem")
"""The one certificate that an isolated target trusts; nobody has its key. Reading all of the system's takes 50 ms for every HTTP client that is made."""
_KEPT: Final = ("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT")


class StartedProcess:
    """A process of the target that the kit started, on one port and one folder for all its lives."""

    def __init__(
        self, profile: Profile, probe_url: str, folder: "tempfile.TemporaryDirectory[str] | None" = None
    ) -> None:
        assert profile.process is not None, "only a target that the kit knows how to start is started"
        self._profile = profile
        self._process = profile.process
        self._folder = folder or tempfile.TemporaryDirectory(prefix="continuity-")
        self._port = Port()
        self._probe_url = probe_url
        self._running: asyncio.subprocess.Process | None = None
        self._output = Path(self._folder.name, f"continuity-output-{self._port.number}.log")
        """What it says. A file, not a pipe: nobody has to read it, and no end waits for whoever holds the other end."""
        self.start_seconds = 0.0

    @property
    def url(self) -> str:
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
        """Another process on the same folder."""
        return StartedProcess(self._profile, self._probe_url, self._folder)

    def without_keys(self) -> "StartedProcess":
        """The same target with no key configured, in a folder of its own."""
        process = replace(self._process, start=self._process.keyless)
        return StartedProcess(replace(self._profile, process=process, principals={}), self._probe_url)

    async def start(self) -> None:
        began = time.monotonic()
        await self.launch()
        await self._ready(self._process.start[0])
        self.start_seconds = time.monotonic() - began
        if self._process.warm_up:
            await self._warm_up(self._process.warm_up)

    async def launch(self) -> None:
        """Start the process without waiting until it is ready."""
        command = [self._filled(word) for word in self._process.start]
        self._write_files()
        try:
            with self._output.open("wb") as output:
                self._running = await asyncio.create_subprocess_exec(
                    *command,
                    env=self._environment(),
                    cwd=self._folder.name,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=asyncio.subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as trouble:
            raise NotStartedError(
                f"The target cannot be started: {trouble}.", where=command[0], do="Check process.start."
            ) from None

    def _write_files(self) -> None:
        """Once, before the first start: what the target made of them since is its own."""
        for name, text in self._process.files.items():
            path = Path(self._folder.name, name)
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(self._filled(text), encoding="utf-8")

    def _environment(self) -> dict[str, str]:
        given = {name: self._filled(value) for name, value in self._process.env.items()}
        return {**(_nothing_of_the_user(self._folder.name) if self._process.isolated else os.environ), **given}

    async def _warm_up(self, seconds: float) -> None:
        """One real turn: what a target loads at the first one is no scenario's business."""
        headers = self._profile.request_headers(self._profile.principals.get("alice", ""))
        turn = {"model": self._profile.model, "messages": [{"role": "user", "content": "Warm up."}]}
        trouble = f"no answer in {seconds:g} s"
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), aiohttp.ClientSession(headers=headers) as session:
                trouble = await _turn_fails(session, f"{self.url}/v1/chat/completions", turn)
        if trouble:
            raise NotStartedError(
                f"The target's first turn did not succeed: {trouble}.", where=self.url, do=f"It said:\n  {self._said}"
            )

    @property
    def _said(self) -> str:
        """Its last lines, so that a target that does not come up can say why."""
        with self._output.open("rb") as output:
            output.seek(max(0, output.seek(0, os.SEEK_END) - _LAST_BYTES))
            lines = output.read().decode("utf-8", "replace").splitlines()
        return "\n  ".join(line.rstrip() for line in lines[-_LAST_LINES:]) or "nothing"

    async def restart(self) -> None:
        await self.end()
        await self.start()

    async def kill(self) -> None:
        await self.end(signal.SIGKILL)
        await self.start()

    async def has_ended(self) -> bool:
        """Whether it ends without us, in the time that it has for that."""
        assert self._running is not None, "only what was started can end"
        with suppress(TimeoutError):
            async with asyncio.timeout(self._process.stop_seconds):
                await self._running.wait()
        return not self.runs

    async def stop(self) -> None:
        await self.leave()
        self._folder.cleanup()

    async def leave(self) -> None:
        """End for good. The folder stays, for others that have it too."""
        await self.end()
        self._port.release()

    def _filled(self, word: str) -> str:
        return (
            word.replace("{port}", str(self._port.number))
            .replace("{folder}", self._folder.name)
            .replace("{probe}", self._probe_url)
        )

    async def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        running = self._running
        if running is None or running.returncode is not None:
            return
        _signal_group(running.pid, how)
        try:
            async with asyncio.timeout(self._process.stop_seconds):
                await running.wait()
        except TimeoutError:
            _signal_group(running.pid, signal.SIGKILL)
            await running.wait()

    async def _ready(self, command: str) -> None:
        try:
            headers = self._profile.request_headers("")
            async with asyncio.timeout(self._process.seconds), aiohttp.ClientSession(headers=headers) as session:
                while not await _answers(session, self.url + self._process.ready):
                    self._must_run(command)
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            where = f"{self.url}{self._process.ready}"
            raise NotStartedError(
                f"The target did not become ready in {self._process.seconds:g} s.",
                where=where,
                do=f"It said:\n  {self._said}",
            ) from None

    def _must_run(self, command: str) -> None:
        assert self._running is not None
        if self._running.returncode is not None:
            raise NotStartedError(
                f"The target ended at once with code {self._running.returncode}.",
                where=command,
                do=f"It said:\n  {self._said}",
            )


def _nothing_of_the_user(folder: str) -> dict[str, str]:
    """An environment in which a target neither finds nor leaves anything outside its folder, and reaches nobody but on loopback."""
    temporary = Path(folder, "tmp")
    temporary.mkdir(exist_ok=True)
    proxies = {
        name: _CLOSED_PROXY for each in ("http", "https", "all") for name in (f"{each}_proxy", f"{each}_PROXY".upper())
    }
    loopback = dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost,::1")
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    heeded = {"NODE_USE_ENV_PROXY": "1"}  # without it, Node asks no proxy that the environment names
    own = {"HOME": folder, "TMPDIR": str(temporary), "SSL_CERT_FILE": str(_NOBODY)}
    return {**kept, **proxies, **loopback, **heeded, **own}


async def _turn_fails(session: aiohttp.ClientSession, url: str, turn: object) -> str:
    """Why a turn did not succeed; empty where it did. A redirect is not followed: the request carries a key."""
    try:
        async with session.post(url, json=turn, allow_redirects=False) as response:
            text = await response.text()
            return "" if response.status < 300 else f"{response.status} {text[:_SHOWN]}"  # noqa: PLR2004
    except (aiohttp.ClientError, OSError) as trouble:
        return str(trouble) or type(trouble).__name__


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    """Whether the target is up. A redirect is an answer too, and is not followed: the request carries the profile's headers."""
    try:
        async with session.get(url, allow_redirects=False) as response:
            return response.status < 500  # noqa: PLR2004
    except (aiohttp.ClientError, OSError):
        return False


def _signal_group(pid: int, how: signal.Signals) -> None:
    """The group, because a target may have children; it is the kit's own, made when the process was started."""
    try:
        os.killpg(pid, how)
    except ProcessLookupError:
        return
