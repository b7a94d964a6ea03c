"""Progress of a run on the terminal: how many requirements are decided, the counts of their verdicts, which areas are open, the time left.

On a terminal it is one line that is overwritten; elsewhere plain lines, one when an area is decided and one every ten seconds.
"""

import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TextIO

from continuity_conformance.core.verdicts import Result, Verdict, counts
from continuity_conformance.run.player import PlayLog
from continuity_conformance.terminal.time_left import TimeLeft
from continuity_spec import Requirement

_LABELS: Final = (
    (Verdict.PASS, "passed"),
    (Verdict.FAIL, "failed"),
    (Verdict.ERROR, "error"),
    (Verdict.NOT_TESTED, "not tested"),
    (Verdict.NOT_APPLICABLE, "not applicable"),
)
_PLAIN_EVERY: Final = 10.0
_ESTIMATE_AFTER: Final = 2.0
_TWO_MINUTES: Final = 120


class RunProgress(Protocol):
    """What is told how a run goes on. `start` when it is open; `tick` a few times a second, and once more at the end."""

    def start(self, requirements: Sequence[Requirement], plays: PlayLog) -> None: ...

    def tick(self, decided: Sequence[Result]) -> None: ...


class LiveLine:
    """Writes to a stream. `is_live`: it is a terminal, so a text replaces the one before."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.is_live = stream.isatty()
        self._shown = 0

    def overwrite(self, text: str) -> None:
        """Use one column less than the terminal has: some terminals wrap when the last column is written."""
        if not self.is_live:
            self.write(text)
            return
        width = shutil.get_terminal_size().columns - 1
        shown = text if len(text) <= width else f"{text[: width - 1]}…"
        self._stream.write(f"\r{shown.ljust(self._shown)}")
        self._stream.flush()
        self._shown = len(shown)

    def erase(self) -> None:
        if self._shown:
            self._stream.write(f"\r{' ' * self._shown}\r")
            self._stream.flush()
            self._shown = 0

    def write(self, text: str) -> None:
        """A line that stays."""
        self.erase()
        self._stream.write(f"{text}\n")
        self._stream.flush()


class ProgressDisplay:
    """Shows the results that the heartbeat passes to `tick`."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._line = LiveLine(stream or sys.stdout)
        self._requirements: tuple[Requirement, ...] = ()
        self._plays = PlayLog()
        self._left: TimeLeft | None = None
        self._began = self._shown_at = time.monotonic()
        self._closed: set[str] = set()

    def start(self, requirements: Sequence[Requirement], plays: PlayLog) -> None:
        self._requirements = tuple(requirements)
        self._plays, self._left = plays, None
        self._began = self._shown_at = time.monotonic()

    def tick(self, decided: Sequence[Result]) -> None:
        by_id = {result.id: result for result in decided}
        areas = list(dict.fromkeys(each.area for each in self._requirements))
        for area in areas:
            members = [each.id for each in self._requirements if each.area == area]
            if area not in self._closed and all(id_ in by_id for id_ in members):
                self._closed.add(area)
                self._line.write(f"{area:10} {len(members):3}   {counted([by_id[id_] for id_ in members])}")
        still_open = [area for area in areas if area not in self._closed]
        if still_open:
            self._status(decided, still_open)
        else:
            self._line.erase()

    def _status(self, decided: Sequence[Result], still_open: Sequence[str]) -> None:
        now = time.monotonic()
        if not self._line.is_live and now - self._shown_at < _PLAIN_EVERY:
            return
        parts = [f"{len(decided)} of {len(self._requirements)}", counted(decided, brief=True)]
        parts += [self._time_left(now), f"open: {' '.join(still_open)}"]
        text = " · ".join(part for part in parts if part)
        self._line.overwrite(text)
        self._shown_at = now

    def _time_left(self, now: float) -> str:
        self._left = self._left or TimeLeft(self._plays)
        left = self._left.seconds(now)
        return "" if left is None or now - self._began < _ESTIMATE_AFTER else f"about {duration(left)} left"

    def end(self) -> None:
        self._line.erase()


def counted(results: Iterable[Result], *, brief: bool = False) -> str:
    """The counts that are not zero, in words. `brief`: only passed, failed and error."""
    tally = counts(results)
    shown = _LABELS[:3] if brief else _LABELS
    return ", ".join(f"{tally[verdict]} {word}" for verdict, word in shown if tally[verdict])


def duration(seconds: float) -> str:
    """A time for people: up to two minutes in seconds."""
    whole = max(1, round(seconds))
    return f"{whole} s" if whole < _TWO_MINUTES else f"{round(whole / 60)} min"
