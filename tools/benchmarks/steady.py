"""Whether any verdict changes in ten runs of the whole suite on the reference server, in a row, while every core is kept busy.

    python tools/benchmarks/steady.py [--runs 10]

Exit 1 where a requirement has two verdicts, or one fails. Run it on a machine that does nothing else.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def busy_cores() -> Iterator[None]:
    workers = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(os.cpu_count() or 1)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        for worker in workers:
            worker.kill()


def _spin() -> None:
    while True:
        sum(range(10_000))


def verdicts() -> tuple[dict[str, str], float]:
    """Every requirement's verdict in one run, and how long the run took. Tells why something failed."""
    command = [str(Path(sys.executable).with_name("continuity")), "check", "--report"]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*command, folder], check=False, stdout=subprocess.DEVNULL)
        run = json.loads((Path(folder) / "results.json").read_text(encoding="utf-8"))
    for each in run["requirements"]:
        if each["verdict"] in {"fail", "error"}:
            print(f"{each['id']} {each['verdict']}: {each['reason'] or each['failure']}")
    return {each["id"]: each["verdict"] for each in run["requirements"]}, time.monotonic() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    runs: list[dict[str, str]] = []
    with busy_cores():
        for number in range(1, parser.parse_args().runs + 1):
            found, seconds = verdicts()
            runs.append(found)
            print(f"run {number}: {seconds:.1f} s, {dict(Counter(found.values()))}", flush=True)
    unsteady = sorted(one for one in runs[0] if len({found.get(one) for found in runs}) > 1)
    failed = sorted({one for found in runs for one, verdict in found.items() if verdict in {"fail", "error"}})
    print(f"{len(runs)} runs, {len(unsteady)} with two verdicts {unsteady}, {len(failed)} failed {failed}")
    return 1 if unsteady or failed else 0


if __name__ == "__main__":
    sys.exit(main())
