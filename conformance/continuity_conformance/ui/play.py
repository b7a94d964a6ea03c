"""The one run at a time, and its events for all pages that watch. A page that comes later gets all events of the run so far."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from continuity_conformance.core.errors import UsageError
from continuity_conformance.ui import commands
from continuity_conformance.ui.child import Child
from continuity_conformance.ui.form import Form
from continuity_conformance.ui.history import RunHistory

_BEAT: Final = 15.0


class EventLog:
    """Events of the newest run, each with a number that grows for ever, so that a page that comes back says what it has seen."""

    def __init__(self) -> None:
        self._first = 1
        self._events: list[str] = []
        self._new = asyncio.Event()
        self._over = False

    def restart(self) -> None:
        """A new run begins: nobody asks for the events of the last one."""
        self._first += len(self._events)
        self._events.clear()

    def add(self, **event: object) -> None:
        self._events.append(json.dumps(event))
        self._wake()

    def close(self) -> None:
        self._over = True
        self._wake()

    async def after(self, seen: int) -> AsyncIterator[tuple[int, str] | None]:
        """Each event after this one, also those that are still to come; None now and then, so that a page that has gone is noticed."""
        while not self._over:
            waiting = self._new
            for number, event in list(enumerate(self._events, self._first)):
                if number > seen:
                    seen = number
                    yield number, event
            if waiting is self._new:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_BEAT):
                        await waiting.wait()
                yield None

    def _wake(self) -> None:
        self._new.set()
        self._new = asyncio.Event()


class Play:
    """Starts and stops the run."""

    def __init__(self, history: RunHistory) -> None:
        self.log = EventLog()
        self._history = history
        self._playing: asyncio.Task[None] | None = None
        self._child: Child | None = None

    @property
    def under_way(self) -> bool:
        return self._playing is not None and not self._playing.done()

    def start(self, form: Form) -> str:
        """Start a run and return its name. Raises UsageError."""
        if self.under_way:
            raise UsageError("a run is under way.", do="Stop it first, or wait for its end.")
        folder = self._history.new()
        try:
            command = commands.check(form, folder)
        except UsageError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self.log.restart()
        self.log.add(event="begin", run=folder.name)
        self._child = Child(command, commands.environment(form))
        self._playing = asyncio.create_task(self._play(self._child, folder))
        return folder.name

    async def stop(self) -> None:
        """Stop the run, and wait until its results are written."""
        if self._child is not None:
            await self._child.stop()
        if self._playing is not None:
            with suppress(asyncio.CancelledError):
                await self._playing

    async def _play(self, child: Child, folder: Path) -> None:
        began = False
        async with child:
            async for line in child.lines():
                event = _event(line)
                began = began or event.get("event") == "start"
                if event.get("event") in {"start", "result", "left"}:
                    self.log.add(**event)
            exit_code, message = await child.ended()
        if not began:
            # Nothing was decided, so there is nothing to keep.
            shutil.rmtree(folder, ignore_errors=True)
        self.log.add(event="ended", run=folder.name, exit_code=exit_code, message=message, began=began)


def _event(line: str) -> dict[str, object]:
    """The event of a line; an empty one for what a plugin may have printed."""
    with suppress(ValueError):
        event = json.loads(line)
        return event if isinstance(event, dict) else {}
    return {}
