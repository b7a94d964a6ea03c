"""`make bench`: measures the reference server, stores every figure as JSON, and writes docs/reference/benchmarks.md with its pictures.

    python tools/benchmarks/bench.py [--rounds 5] [--seconds 1.5] [--largest 1000000]

It takes about ten minutes. Run it on a machine that does nothing else.
"""

import argparse
import os
import platform
import sqlite3
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import figures
import scaling
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


def measure(rounds: int, seconds: float, *, in_a_row: int, largest: int) -> figures.Figures:
    """Measure everything, and say each figure as it comes."""
    found = figures.Figures(machine())
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        for one in turns.measure(Path(folder), turns.Plan(rounds, seconds)):
            found.turns.append(one)
            print(f"{one.kind} {one.clients} clients {one.server}: {one.rate:.0f}/s, {one.cpu:.0f} µs", flush=True)
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        for cost in scaling.measure(Path(folder), scaling.Plan(rounds, in_a_row, largest)):
            found.scaling.append(cost)
            print(f"{cost.what} {cost.size:,}: {cost.cpu:.0f} µs, {cost.memory / 1e6:.0f} MB", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5, help="of each measurement of turns a second")
    parser.add_argument("--in-a-row", type=int, default=100, help="turns of each measurement of their cost")
    parser.add_argument("--largest", type=int, default=1_000_000, help="how much is stored at most")
    given = parser.parse_args()
    found = measure(given.rounds, given.seconds, in_a_row=given.in_a_row, largest=given.largest)
    figures.write(found)
    write_pages(figures.read())


if __name__ == "__main__":
    main()
