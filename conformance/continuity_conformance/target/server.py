"""Servers: a target at an address, and where the kit started it, its process and the database that old ones are put in place of."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from continuity_conformance.target.process import StartedProcess
from continuity_conformance.target.profile import Profile

_TOUCH_SECONDS: Final = 0.001
_SQLITE_FILES: Final = ("", "-wal", "-shm", "-journal")


@dataclass(slots=True)
class Server:
    """One running target. `started` is None where the kit did not start it. `lived`: it may hold sessions of others."""

    url: str
    profile: Profile
    started: StartedProcess | None = None
    broken: set[str] = field(default_factory=set)
    twins: list[StartedProcess] = field(default_factory=list)

    @property
    def lived(self) -> bool:
        return self.started is None

    def url_of(self, number: int) -> str:
        """The address of the server itself (1), or of a process that shares its data."""
        return self.url if number == 1 else self.twins[number - 2].url

    def document_path(self, path: str) -> str:
        """A path as the OpenAPI document has it: without what stands before it in the target's address, and its sessions in their place."""
        return self.profile.documented_path(path.removeprefix(urlsplit(self.url).path))

    async def begin_anew(self, write: Callable[[Path], None], servers: int) -> None:
        """Stop, put an old database in place, and start so many processes on it at once."""
        started = self._replaced(await self._stopped(), write)
        self.twins = [started.twin() for _ in range(servers - 1)]
        starts = [process.start() for process in (started, *self.twins)]
        for trouble in filter(None, await asyncio.gather(*starts, return_exceptions=True)):
            raise trouble

    async def begin_and_kill(self, write: Callable[[Path], None], starts: float) -> None:
        """Stop, put an old database in place, start, kill so many times the time of a start after the database was touched, start again."""
        started = self._replaced(await self._stopped(), write)
        untouched = self._touches()
        await started.launch()
        with suppress(TimeoutError):
            async with asyncio.timeout(2 * started.start_seconds):
                while self._touches() == untouched:  # noqa: ASYNC110 - files tell nobody when they change
                    await asyncio.sleep(_TOUCH_SECONDS)
        await asyncio.sleep(started.start_seconds * starts)
        await started.kill()

    def _touches(self) -> list[tuple[str, int, int]]:
        """The files of the database, with their sizes and the times of their last changes."""
        files = []
        for path in self._database_files():
            with suppress(FileNotFoundError):  # the target deletes its journal at any moment
                now = path.stat()
                files.append((path.name, now.st_size, now.st_mtime_ns))
        return files

    def _database_files(self) -> list[Path]:
        return [self.database.with_name(self.database.name + suffix) for suffix in _SQLITE_FILES]

    @property
    def database(self) -> Path:
        """The file that old databases replace. Raises UsageError unless it is in the target's folder."""
        assert self.started is not None, "only a target that the kit started has a database that it may replace"
        return self.started.own_file(self.profile.legacy, "legacy")

    async def _stopped(self) -> StartedProcess:
        assert self.started is not None, "only a target that the kit started can be stopped"
        await self.part_from_twins()
        await self.started.end()
        return self.started

    def _replaced(self, started: StartedProcess, write: Callable[[Path], None]) -> StartedProcess:
        """Put an old database in place. The kit made the folder for this run, so no file of the user is in it."""
        for path in self._database_files():
            path.unlink(missing_ok=True)
        write(self.database)
        return started

    @property
    def runs(self) -> bool:
        return self.started is None or self.started.runs

    async def part_from_twins(self) -> None:
        twins, self.twins = self.twins, []
        await asyncio.gather(*(twin.leave() for twin in twins))

    async def stop(self) -> None:
        await self.part_from_twins()
        if self.started is not None:
            await self.started.stop()


async def start_server(profile: Profile, probe_url: str, *, alone: bool = False) -> Server:
    """Start the target. `alone`: it will play one scenario at a time."""
    process = profile.process
    assert process is not None
    process = replace(process, start=(*process.start, *(process.alone if alone else ())))
    started = StartedProcess(replace(profile, process=process), probe_url)
    try:
        await started.start()
    except BaseException:
        await started.stop()
        raise
    return Server(started.url, profile, started)
