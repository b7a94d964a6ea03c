"""A server: a target at an address. If the kit started it: its process, and its database, which the kit can replace by an old one."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from continuity_conformance.target.old_database import OldRow, old_database, write_to
from continuity_conformance.target.process import StartedProcess
from continuity_conformance.target.profile import Profile

_POLL_SECONDS: Final = 0.001
_SQLITE_FILES: Final = ("", "-wal", "-shm", "-journal")


@dataclass(slots=True)
class Server:
    """One running target.

    `started`: its process, or None if the kit did not start it. `broken`: the store faults that are switched on. `twins`: other processes
    that share its data.
    """

    url: str
    profile: Profile
    started: StartedProcess | None = None
    broken: set[str] = field(default_factory=set)
    twins: list[StartedProcess] = field(default_factory=list)
    this_release: StartedProcess | None = None
    """The process of the release under test, ended, while `started` is the previous release."""

    @property
    def may_hold_sessions(self) -> bool:
        """True if there may be sessions that this run did not create."""
        return self.started is None

    def url_of(self, number: int) -> str:
        """The URL of the server itself (number 1), or of one of its twins (from 2)."""
        return self.url if number == 1 else self.twins[number - 2].url

    def document_path(self, path: str) -> str:
        """A request path as the OpenAPI document writes it: without the path of the target's URL, and with the standard path of sessions."""
        return self.profile.documented_path(path.removeprefix(urlsplit(self.url).path))

    async def start_previous_release(self) -> None:
        """End this release, and start the previous one without any data."""
        assert self.started is not None, "the kit stops only a target that it started"
        await self.started.stop()
        self.this_release = self.started
        await self._start(self.started.previous_release())

    async def upgrade(self) -> None:
        """End the previous release, and start this one on its data."""
        previous, this_release = self.started, self.this_release
        assert previous is not None, "the kit stops only a target that it started"
        assert this_release is not None, "an upgrade follows the start of the previous release"
        await previous.end_and_release_port()
        self.this_release = None
        await self._start(this_release.upgrade_of(previous))

    async def _start(self, process: StartedProcess) -> None:
        self.started, self.url = process, process.url
        await process.start()

    async def leave_previous_release(self) -> None:
        """End the previous release, where a scenario left it running: no other scenario may use it."""
        if self.this_release is not None:
            await self.stop()

    async def restart_on_database(self, rows: Sequence[OldRow], servers: int) -> None:
        """Stop, replace the database by an old one with these rows, and start so many processes on it at the same time."""
        started = await self._stop_and_replace_database(rows)
        self.twins = [started.twin() for _ in range(servers - 1)]
        starts = [process.start() for process in (started, *self.twins)]
        for error in filter(None, await asyncio.gather(*starts, return_exceptions=True)):
            raise error

    async def start_twins(self, twins: int) -> None:
        """Start so many more processes in the folder of the running one."""
        assert self.started is not None, "only a target that the kit started has twins"
        self.twins = [self.started.twin() for _ in range(twins)]
        await asyncio.gather(*(twin.start() for twin in self.twins))

    async def kill_during_start(self, rows: Sequence[OldRow], starts: float) -> None:
        """Stop, replace the database by an old one with these rows, start, kill the process while it works on the database, and start again.

        `starts`: when to kill it, counted from its first write to the database, in multiples of the time of a normal start.
        """
        started = await self._stop_and_replace_database(rows)
        before = await self._database_state()
        await started.launch()
        with suppress(TimeoutError):
            async with asyncio.timeout(2 * started.start_seconds):
                while await self._database_state() == before:  # noqa: ASYNC110 - there is no event for a changed database
                    await asyncio.sleep(_POLL_SECONDS)
        await asyncio.sleep(started.start_seconds * starts)
        await started.kill()

    async def add_old_rows(self, rows: Sequence[OldRow]) -> None:
        """Write rows into the database of the running target, in the statements of the old schema."""
        if self.profile.old_store is not None:
            await self.profile.old_store.add(self._folder, rows)
        else:
            await asyncio.to_thread(write_to, self.database, rows)

    @property
    def _folder(self) -> Path:
        assert self.started is not None, "only a target that the kit started has a folder"
        return self.started.file("{folder}")

    async def _database_state(self) -> object:
        """What changes when the target works on its database: its files, with their sizes and the times of their last changes."""
        if self.profile.old_store is not None:
            return await self.profile.old_store.state(self._folder)
        files = []
        for path in self._database_files():
            with suppress(FileNotFoundError):  # the target deletes its journal at any time
                stat = path.stat()
                files.append((path.name, stat.st_size, stat.st_mtime_ns))
        return files

    def _database_files(self) -> list[Path]:
        return [self.database.with_name(self.database.name + suffix) for suffix in _SQLITE_FILES]

    @property
    def database(self) -> Path:
        """The file that old databases replace. Raises UsageError unless it is in the target's folder."""
        assert self.started is not None, "only a target that the kit started has a database that it may replace"
        return self.started.own_file(self.profile.legacy, "legacy")

    async def _stop_and_replace_database(self, rows: Sequence[OldRow]) -> StartedProcess:
        """The folder of the database was made by the kit for this run, so it holds no file of the user."""
        assert self.started is not None, "the kit stops only a target that it started"
        await self.stop_twins()
        await self.started.end()
        if self.profile.old_store is not None:
            await self.profile.old_store.replace(self._folder, rows)
            return self.started
        for path in self._database_files():
            path.unlink(missing_ok=True)
        old_database(rows)(self.database)
        return self.started

    @property
    def runs(self) -> bool:
        return self.started is None or self.started.runs

    @property
    def last_output(self) -> str:
        """The end of the target's own output; empty if the kit did not start it."""
        return f"Its output:\n  {self.started.last_output}" if self.started is not None else ""

    async def stop_twins(self) -> None:
        twins, self.twins = self.twins, []
        await asyncio.gather(*(twin.end_and_release_port() for twin in twins))

    async def stop(self) -> None:
        await self.stop_twins()
        if self.started is not None:
            await self.started.stop()


def output_of(server: Server) -> Callable[[], str]:
    """A function that gives the last lines that the server's process has written since now; nothing if the kit did not start it."""
    started = server.started
    written = started.output.stat().st_size if started is not None and started.output.exists() else 0

    def output() -> str:
        now = server.started
        return now.output_since(written if now is started else 0) if now is not None else ""

    return output


async def start_server(profile: Profile, probe_url: str, *, alone: bool = False, several: bool = False) -> Server:
    """Start the target. `alone`: the server plays one scenario at a time, so the arguments of `process.alone` are added; `several`: it gets twins, so those of `process.several`."""
    process = profile.process
    assert process is not None
    more = (*(process.alone if alone else ()), *(process.several if several else ()))
    process = replace(process, start=(*process.start, *more))
    started = StartedProcess(replace(profile, process=process), probe_url)
    try:
        await started.start()
    except BaseException:
        await started.stop()
        raise
    return Server(started.url, profile, started)
