"""A process of the target in a campaign: it is killed, stopped and started here."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from continuity_conformance.core.failure import Untested
from continuity_conformance.target.controls import Controls
from continuity_conformance.target.process import StartedProcess
from continuity_conformance.torture.audit.journal import Journal

KILL: Final = signal.SIGKILL
TERMINATE: Final = signal.SIGTERM


class Replica:
    """One process. `up` is set while clients may send turns to it. `struck`: a signal that ends it was sent."""

    def __init__(self, number: int, process: StartedProcess, controls: Controls, journal: Journal) -> None:
        self.number = number
        self._process = process
        self._controls = controls
        self._journal = journal
        self.up = asyncio.Event()
        self.struck = asyncio.Event()
        self.moment = ""

    @property
    def start_seconds(self) -> float:
        return self._process.start_seconds

    @property
    def has_own_kill(self) -> bool:
        """Whether the profile or the plugin has a control that kills the target, because a signal from here does not reach it."""
        return "kill" in self._controls.own

    def strike(self, moment: str, how: signal.Signals = KILL) -> None:
        """Send the signal now. Only the first one counts: several moments may wait for the same kill."""
        if not self.struck.is_set():
            self.moment = moment
            self.up.clear()
            self.struck.set()
            self._journal.note(self.number, f"{how.name}, {moment}")
            if not self.has_own_kill:
                self._process.send_signal(how)

    async def ended(self, how: signal.Signals) -> None:
        """Wait until the process that was struck has ended."""
        if self.has_own_kill:
            await self._controls.end_process("kill" if how == KILL else "restart")
        self._process.send_signal(signal.SIGCONT)  # a stopped process does not end by SIGTERM
        await self._process.end(how)
        self._journal.note(self.number, "ended")

    async def start(self, before: Callable[[], None] = lambda: None) -> None:
        """Start it again. `before` is called when it is ready, before clients send turns to it."""
        await self._process.start()
        self._journal.note(self.number, "started")
        before()
        self.struck.clear()
        self.up.set()

    async def begin_start_and_kill(self, seconds: float) -> None:
        """Start it, and kill it after so many seconds, whether it is ready by then or not."""
        self._journal.note(self.number, "start begins")
        await self._process.launch()
        await asyncio.sleep(seconds)
        self._journal.note(self.number, f"SIGKILL, {seconds * 1000:.0f} ms into the start")
        with suppress(Untested):
            await self._process.end(KILL)
        self._journal.note(self.number, "ended")

    async def stop_now(self, seconds: float) -> None:
        """SIGSTOP. A signal that ends it follows after so many seconds."""
        self._journal.note(self.number, "SIGSTOP")
        self._process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)

    async def pause(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after so many seconds. Clients go on sending: their turns wait."""
        self._journal.note(self.number, f"SIGSTOP for {seconds * 1000:.0f} ms")
        self._process.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._process.send_signal(signal.SIGCONT)
            self._journal.note(self.number, "SIGCONT")
