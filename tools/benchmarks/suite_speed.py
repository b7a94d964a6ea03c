"""How long the suite takes on the bundled server, start to verdict, beside a bare replay of its requests; and on a target that takes 300 ms for every turn.

    python tools/benchmarks/suite_speed.py [--rounds 3]

`bench.py` measures the same and stores it.
"""

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import replay
from continuity_conformance.checks.registry import DISTURBING
from continuity_conformance.core.verdicts import Evidence
from continuity_conformance.probe.reply import ModelCall, ModelReply
from continuity_conformance.probe.server import Probe
from continuity_conformance.run import scheduler
from continuity_conformance.run.player import ScenarioPlayer, ScenarioRun
from continuity_conformance.run.session import Run
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import Requirement, load_spec

CONTINUITY: Final = Path(sys.executable).with_name("continuity")
RUNS: Final = {"complete": (), "Core": ("--class", "Core"), "start-up": ("-k", "DISCOVER-01")}
"""What is run: the whole suite, its first class, and one short requirement."""
TURN_SECONDS: Final = 0.3
_LONGEST: Final = 900


@dataclass(frozen=True, slots=True)
class SuiteTime:
    """One measurement: seconds, and the requests that were sent, where they were counted."""

    what: str
    round: int
    seconds: float
    requests: int = 0


def measure(rounds: int, requirements: Sequence[Requirement] = ()) -> Iterator[SuiteTime]:
    """Measure everything. `requirements`: only these, where they are played here; all by default."""
    played = requirements or [each for each in load_spec().requirements if each.manual is None]
    chosen = ("-k", " or ".join(each.id for each in requirements)) if requirements else ()
    for number in range(rounds):
        for what, arguments in RUNS.items():
            yield SuiteTime(what, number, _check(*arguments, *(chosen if what == "complete" else ())))
        profile = reference_profile()
        recorder = replay.recorded(profile, played)
        yield SuiteTime("replay", number, replay.replayed(profile, recorder), recorder.requests)
        yield from _slow(number, played)


def _check(*arguments: str) -> float:
    """The seconds of `continuity check`. A part of the suite is never conformant, so its exit code says nothing here."""
    began = time.monotonic()
    subprocess.run([str(CONTINUITY), "check", *arguments], check=False, capture_output=True, timeout=_LONGEST)
    return time.monotonic() - began


class SlowProbe(Probe):
    """The probe model, which thinks before each answer."""

    async def reply(self, call: ModelCall) -> ModelReply:
        await asyncio.sleep(TURN_SECONDS)
        return await super().reply(call)


@dataclass(slots=True)
class Disturbing:
    """How long the disturbing scenarios of a run played, each for itself."""

    seconds: list[float] = field(default_factory=list)

    def player(self) -> type[ScenarioPlayer]:
        seconds = self.seconds

        class Timed(ScenarioPlayer):
            async def _play_once(self, run: ScenarioRun, dialogue: Dialogue) -> Evidence:
                began = time.monotonic()
                try:
                    return await super()._play_once(run, dialogue)
                finally:
                    if run.scenario.disturbing or run.requirement.check in DISTURBING:
                        seconds.append(time.monotonic() - began)

        return Timed


def _slow(number: int, requirements: Sequence[Requirement]) -> Iterator[SuiteTime]:
    """A run in which every turn takes at least 300 ms, and what it needs at least: its longest chain of requests, and the disturbing scenarios on their servers."""
    profile, recorder, disturbing, began = reference_profile(), replay.Recorder(), Disturbing(), time.monotonic()
    slow: dict[str, Any] = {
        "Probe": SlowProbe,
        "ScenarioPlayer": disturbing.player(),
        "Transport": recorder.transport(),
    }
    with patch.multiple(scheduler, **slow), Run(resolve(None, profile), requirements) as run:
        for each in requirements:
            run.result(each.id)
    yield SuiteTime("slow", number, time.monotonic() - began, recorder.requests)
    least = recorder.longest_chain + sum(disturbing.seconds) / profile.limits.disturbed
    yield SuiteTime("slow at least", number, least)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    for one in measure(parser.parse_args().rounds):
        print(f"{one.what}: {one.seconds:.1f} s{f', {one.requests} requests' if one.requests else ''}", flush=True)


if __name__ == "__main__":
    main()
