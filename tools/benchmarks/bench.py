"""`make bench`: measures the reference server, stores every figure as JSON, and writes docs/reference/benchmarks.md with its pictures.

    python tools/benchmarks/bench.py [--rounds 5] [--seconds 1.5] [--largest 1000000] [--only suite]

It takes about twenty minutes. Run it on a machine that does nothing else. `--only suite` (or `turns`, `scaling`) measures one part anew and keeps the other figures.
"""

import argparse
import os
import platform
import sqlite3
import tempfile
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import figures
import scaling
import suite_speed
import turns
from benchmark_page import write_pages


def machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "load before": round(os.getloadavg()[0], 1),
        "Python": platform.python_version(),
        "aiohttp": version("aiohttp"),
        "SQLite": sqlite3.sqlite_version,
    }


def measure_turns(found: figures.Figures, given: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        for one in turns.measure(Path(folder), turns.Plan(given.rounds, given.seconds)):
            found.turns.append(one)
            print(f"{one.kind} {one.clients} clients {one.server}: {one.rate:.0f}/s, {one.cpu:.0f} µs", flush=True)


def measure_scaling(found: figures.Figures, given: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        for cost in scaling.measure(Path(folder), scaling.Plan(given.rounds, given.in_a_row, given.largest)):
            found.scaling.append(cost)
            print(f"{cost.what} {cost.size:,}: {cost.cpu:.0f} µs, {cost.memory / 1e6:.0f} MB", flush=True)


def measure_suite(found: figures.Figures, given: argparse.Namespace) -> None:
    for run in suite_speed.measure(given.rounds):
        found.suite.append(run)
        print(f"{run.what}: {run.seconds:.1f} s", flush=True)


PARTS: Final = {"turns": measure_turns, "scaling": measure_scaling, "suite": measure_suite}
"""Each part adds its figures to a list of the same name."""


def measured(given: argparse.Namespace) -> figures.Figures:
    """Measure everything, or one part beside the stored figures of the others, and say each figure as it comes."""
    if not given.only:
        found = figures.Figures(machine())
        for measure in PARTS.values():
            measure(found, given)
        return found
    found = figures.read()
    getattr(found, given.only).clear()
    PARTS[given.only](found, given)
    return replace(found, machine={**found.machine, f"load before {given.only}": machine()["load before"]})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5, help="of each measurement of turns a second")
    parser.add_argument("--in-a-row", type=int, default=100, help="turns of each measurement of their cost")
    parser.add_argument("--largest", type=int, default=1_000_000, help="how much is stored at most")
    parser.add_argument("--only", choices=PARTS, help="measure this part, and keep the stored figures of the others")
    given = parser.parse_args()
    with figures.failing_in_one_line():
        figures.write(measured(given))
        write_pages(figures.read())


if __name__ == "__main__":
    main()
