"""`continuity torture`: kill a target again and again while clients use it, and audit every conversation."""

import argparse
import asyncio
import math
import secrets
import signal
import sys
from pathlib import Path
from typing import Final

from continuity_conformance.cli.options import add_options, add_target
from continuity_conformance.core.errors import ContinuityError, UsageError
from continuity_conformance.results.redaction import redactor_of
from continuity_conformance.run.signals import Stopped
from continuity_conformance.target.resolve import resolve
from continuity_conformance.torture.audit.journal import Journal
from continuity_conformance.torture.campaign import Plan, Progress
from continuity_conformance.torture.drawing import write_page
from continuity_conformance.torture.progress import Display
from continuity_conformance.torture.result import CampaignResult, write
from continuity_conformance.torture.stage import Stage
from continuity_conformance.torture.state import Counts
from continuity_conformance.torture.words import lines

_SEEDS: Final = 1_000_000
_MOST_CLIENTS: Final = 500
_MOST_REPLICAS: Final = 8
_STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_BY_SIGNAL: Final = 128


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target(parser)
    add_options(parser, "profile")
    parser.add_argument(
        "--kills",
        type=int,
        default=100,
        metavar="N",
        help="how many SIGKILLs (default: 100); SIGTERM and SIGSTOP come on top",
    )
    parser.add_argument(
        "--minutes", type=float, default=10.0, metavar="M", help="start no further kill after this time (default: 10)"
    )
    parser.add_argument("--seed", type=int, metavar="S", help="repeat the choices of a campaign (default: a new one)")
    parser.add_argument("--clients", type=int, default=16, metavar="C", help="how many clients (default: 16)")
    parser.add_argument(
        "--replicas",
        type=int,
        default=1,
        metavar="R",
        help="so many processes of the target on the same data (default: 1)",
    )
    parser.add_argument("--stop-at-first", action="store_true", help="end with the first violation")
    parser.add_argument(
        "--report",
        type=Path,
        default=Path("continuity-torture"),
        metavar="DIR",
        help="for torture.json and torture.html (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    plan = _plan(options)
    target = resolve(options.target, options.profile)
    try:
        result, stopped_by = asyncio.run(_play(Stage(target, plan, Progress(), Counts(), Journal())))
    except ContinuityError as error:
        raise redactor_of(target.profile, target.url).error(error) from None
    files = [write(result, options.report), write_page(result, options.report)]
    sys.stdout.writelines(f"{line}\n" for line in lines(result, target.arguments, files))
    return result.exit_code if result.violations or not stopped_by else _BY_SIGNAL + stopped_by


async def _play(stage: Stage) -> tuple[CampaignResult, int]:
    """Play, and show how far it is. The first signal lets it end in good order; later ones are ignored, because people press Ctrl-C twice."""
    stopped: list[int] = []
    playing = asyncio.create_task(stage.play())

    def stop(number: int) -> None:
        stopped.append(number)
        stage.progress.stopped = True
        if stage.progress.phase == "starting":
            playing.cancel()

    loop = asyncio.get_running_loop()
    for each in _STOPPING:
        loop.add_signal_handler(each, stop, each)
    showing = asyncio.create_task(Display().show(stage))
    try:
        return await playing, stopped[0] if stopped else 0
    except asyncio.CancelledError:
        raise Stopped(stopped[0] if stopped else signal.SIGINT) from None
    finally:
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)


def _plan(options: argparse.Namespace) -> Plan:
    _must(options.kills > 0, f"--kills {options.kills}", "A campaign has at least one kill.")
    _must(
        math.isfinite(options.minutes) and options.minutes > 0,
        f"--minutes {options.minutes:g}",
        "Give a positive number of minutes.",
    )
    _must(0 < options.clients <= _MOST_CLIENTS, f"--clients {options.clients}", f"Give 1 to {_MOST_CLIENTS} clients.")
    _must(
        0 < options.replicas <= _MOST_REPLICAS,
        f"--replicas {options.replicas}",
        f"Give 1 to {_MOST_REPLICAS} processes.",
    )
    seed = options.seed if options.seed is not None else secrets.randbelow(_SEEDS)
    return Plan(options.kills, options.minutes, seed, options.clients, options.replicas, options.stop_at_first)


def _must(holds: bool, where: str, do: str) -> None:
    if not holds:
        raise UsageError("this number cannot be used.", where=where, do=do)
