"""Measure how much work each play is on the bundled server, and write what `terminal/time_left.py` judges the time left by.

    python tools/work.py
    python tools/work.py --record FILE [--turn 0.3] [--start 4] [--limits '{"parallel": 6}'] [--server=--defect=NAME]

`--record` makes the server slow and writes the run instead: when each play began and ended, and what it did. The tests of the time left play it back.
"""

import argparse
import asyncio
import json
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any
from unittest.mock import patch

from continuity_conformance.core.work import Count
from continuity_conformance.probe.reply import ModelCall, ModelReply
from continuity_conformance.probe.server import Probe
from continuity_conformance.run import scheduler
from continuity_conformance.run.player import PlayLog, ScenarioPlay
from continuity_conformance.run.session import Run
from continuity_conformance.target.profile import Process, Profile
from continuity_conformance.target.resolve import resolve
from continuity_conformance.terminal.time_left import FILE
from continuity_plugins.reference import reference_profile
from continuity_spec import load_spec


def row(play: ScenarioPlay) -> tuple[float, float, float, float]:
    """Turns, other requests, starts of servers, and how many requests were open at the same time."""
    work = play.work
    counts = (work.turns, work.others, work.starts)
    lasted = (play.ended or 0.0) - (work.began or 0.0)
    at_once = sum(count.seconds for count in counts) / lasted if lasted > 0 else 1.0
    return (work.turns.number, work.others.number, work.starts.number, max(1.0, at_once))


def table(log: PlayLog) -> dict[str, dict[str, list[float]]]:
    """The means of the plays of each requirement, by group."""
    rows: dict[str, dict[str, list[tuple[float, ...]]]] = defaultdict(lambda: defaultdict(list))
    for play in log:
        rows[play.requirement][play.group].append(row(play))
    return {
        id_: {group: [round(mean(column), 1) for column in zip(*plays, strict=True)] for group, plays in groups.items()}
        for id_, groups in sorted(rows.items())
    }


def recorded(log: PlayLog, began: float, seconds: float) -> dict[str, Any]:
    """A run: what was done before the first play, how long a turn, another request and a start took, and one line for each play."""
    works = [play.work for play in log]
    takes = {
        name: _mean([getattr(work, name) for work in [log.before, *works]]) for name in ("turns", "others", "starts")
    }
    before = {name: [getattr(log.before, name).number, round(getattr(log.before, name).seconds, 3)] for name in takes}
    lines = [_line(play, began) for play in log if play.ended is not None]
    return {
        "seconds": round(seconds, 1),
        "examples": log.examples,
        "at_once": log.at_once,
        "takes": takes,
        "before": before,
        "plays": lines,
    }


def _line(play: ScenarioPlay, began: float) -> str:
    work, ended = play.work, (play.ended or 0.0) - began
    since = work.began - began if work.began is not None else ended
    counts = (work.turns.number, work.others.number, work.starts.number, work.planned)
    return f"{play.requirement} {play.group.replace(' ', '_')} {since:.1f} {ended:.1f} {' '.join(map(str, counts))}"


def _mean(counts: list[Count]) -> float:
    return round(sum(count.seconds for count in counts) / max(1, sum(count.number for count in counts)), 4)


def slow(profile: Profile, start_seconds: float, limits: dict[str, Any]) -> Profile:
    """The profile with these limits, whose server takes so much longer to start."""

    def later(process: Process) -> Process:
        command = ("sh", "-c", f'sleep {start_seconds}; exec "$@"', "sh")
        keyless = (*command, *process.keyless) if process.keyless else ()
        return replace(process, start=(*command, *process.start), keyless=keyless, preload=())

    assert profile.process is not None
    assert profile.previous is not None
    if start_seconds:
        profile = replace(profile, process=later(profile.process), previous=later(profile.previous))
    return replace(profile, limits=replace(profile.limits, **limits))


def slow_probe(turn_seconds: float) -> type[Probe]:
    """A probe that thinks so long before each answer."""

    class SlowProbe(Probe):
        async def reply(self, call: ModelCall) -> ModelReply:
            await asyncio.sleep(turn_seconds)
            return await super().reply(call)

    return SlowProbe


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, metavar="FILE")
    parser.add_argument("--turn", type=float, default=0.0, help="seconds that a turn takes at least")
    parser.add_argument("--start", type=float, default=0.0, help="seconds that a start takes at least")
    parser.add_argument("--limits", type=json.loads, default={}, help="limits of the profile, as JSON")
    parser.add_argument("--server", action="append", default=[], help="an argument of the server")
    given = parser.parse_args()
    profile = slow(reference_profile(tuple(given.server)), given.start, given.limits)
    requirements = [each for each in load_spec().requirements if each.manual is None]
    probe = slow_probe(given.turn) if given.turn else Probe
    with patch.object(scheduler, "Probe", probe), Run(resolve(None, profile), requirements) as run:
        began = time.monotonic()
        for each in requirements:
            run.result(each.id)
        log, seconds = run.plays, time.monotonic() - began
    if given.record is not None:
        given.record.write_text(json.dumps(recorded(log, began, seconds), indent=0) + "\n", encoding="utf-8")
    else:
        lines = ",\n".join(f' "{id_}": {json.dumps(groups)}' for id_, groups in table(log).items())
        FILE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
