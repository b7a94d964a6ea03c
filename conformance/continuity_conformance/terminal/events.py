"""Progress of a run for programs: one JSON object on each line of stdout (`continuity check --json`).

The events, in their order: `start` names what is decided, `result` comes once for each requirement, `left` says how many seconds are left, `end` has the verdict.
`results.json` has the evidence; the events have what a reader wants to see at once.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TextIO

from continuity_conformance.core.errors import ContinuityError
from continuity_conformance.core.text import cut, one_line, visible
from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.results.classes import class_of
from continuity_conformance.results.ledger import RunOutcome
from continuity_conformance.results.one_line import headline
from continuity_conformance.run.player import PlayLog
from continuity_conformance.terminal.time_left import TimeLeft
from continuity_spec import Requirement

_LONGEST: Final = 300
_LEFT_EVERY: Final = 1.0


class RunEvents:
    """Writes the events of one run."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._told = 0
        self._plays = PlayLog()
        self._left: TimeLeft | None = None
        self._left_told_at = time.monotonic()

    def start(self, requirements: Sequence[Requirement], plays: PlayLog) -> None:
        self._plays, self._left = plays, None
        self._left_told_at = time.monotonic()
        self._write("start", requirements=[_requirement(each) for each in requirements])

    def tick(self, decided: Sequence[Result]) -> None:
        for result in decided[self._told :]:
            self._write("result", **_result(result))
        self._told = len(decided)
        self._tell_time_left()

    def end(
        self, outcome: RunOutcome | None, error: ContinuityError | None, exit_code: int, report: Path | None
    ) -> None:
        self._write(
            "end",
            verdict=outcome.verdict.value if outcome is not None else None,
            finished=outcome is not None and outcome.finished,
            exit_code=exit_code,
            error=str(error) if error is not None else None,
            report=str(report) if report is not None else None,
        )

    def _tell_time_left(self) -> None:
        now = time.monotonic()
        if now - self._left_told_at < _LEFT_EVERY:
            return
        self._left_told_at = now
        self._left = self._left or TimeLeft(self._plays)
        seconds = self._left.seconds(now)
        if seconds is not None:
            self._write("left", seconds=round(seconds))

    def _write(self, event: str, **fields: object) -> None:
        """Write one line. Where its reader has gone, nobody waits for the run: it ends as after SIGTERM."""
        try:
            self._stream.write(f"{json.dumps({'event': event, **visible(fields)})}\n")
            self._stream.flush()
        except BrokenPipeError:
            os.kill(os.getpid(), signal.SIGTERM)


def _requirement(each: Requirement) -> dict[str, object]:
    return {"id": each.id, "area": each.area, "class": class_of(each), "level": each.level.value, "text": each.text}


def _result(result: Result) -> dict[str, object]:
    told = {Verdict.PASS: "", Verdict.FAIL: headline(result)}.get(result.verdict, one_line(result.reason))
    return {
        "id": result.id,
        "verdict": result.verdict.value,
        "seconds": round(result.seconds, 3),
        "reason": cut(told, _LONGEST),
    }
