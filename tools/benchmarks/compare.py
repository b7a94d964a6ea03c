"""`make bench-compare BASE=rev`: the reference server of this checkout beside that of another commit, in turn, in one run.

    python tools/benchmarks/compare.py REV [--rounds 5] [--seconds 1.5]

Figures of two days cannot be compared on a machine that others use too; figures of the same minute can. It also shows the ratios that both commits have stored.
"""

import argparse
import io
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import figures
import turns
from servers import ROOT, reference


def extracted(rev: str, folder: Path) -> Path:
    """The reference server of a commit, as files."""
    archive = subprocess.run(
        ["git", "archive", rev, "reference_server"],  # noqa: S607 - the git of the user
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder


def measured(base: Path, folder: Path, plan: turns.Plan) -> Iterator[tuple[turns.Measured, turns.Measured]]:
    """Each case on both servers, one right after the other."""
    with reference(folder / "base.db", source=base) as old, reference(folder / "now.db") as new:
        for kind in turns.KINDS:
            for clients in plan.clients:
                for number in range(plan.rounds):
                    case = turns.Case(kind, clients, "reference", number)
                    yield turns.measure_one(case, old, plan.seconds), turns.measure_one(case, new, plan.seconds)


def stored_at(rev: str) -> figures.Figures | None:
    """The figures that a commit has stored; None if it has none."""
    name = figures.FILE.relative_to(ROOT).as_posix()
    shown = subprocess.run(["git", "show", f"{rev}:{name}"], cwd=ROOT, check=False, capture_output=True)  # noqa: S607 - the git of the user
    return figures.parsed(json.loads(shown.stdout)) if shown.returncode == 0 else None


def tell_stored(rev: str) -> None:
    before, after = stored_at(rev), stored_at("HEAD")
    if before is None or after is None:
        print("one of the two commits has stored no figures")
        return
    for kind in turns.KINDS:
        for clients in after.clients():
            pair = [one.rate_ratio(kind, clients, "bare").median for one in (before, after)]
            print(f"stored: {kind} {clients} clients, of the bare handler: {pair[0]:.2f}, now {pair[1]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5)
    given = parser.parse_args()
    with figures.failing_in_one_line():
        tell_measured(given)
        tell_stored(given.base)


def tell_measured(given: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as name:
        folder = Path(name)
        base = extracted(given.base, folder / "base")
        pairs = list(measured(base, folder, turns.Plan(given.rounds, given.seconds)))
    for kind, clients in dict.fromkeys((old.kind, old.clients) for old, _ in pairs):
        same = [(old, new) for old, new in pairs if (old.kind, old.clients) == (kind, clients)]
        rate = figures.ratio([new.rate for _, new in same], [old.rate for old, _ in same])
        cpu = figures.ratio([new.cpu for _, new in same], [old.cpu for old, _ in same])
        print(
            f"{kind} {clients} clients: {rate.median:.2f} times the turns a second "
            f"({rate.least:.2f} to {rate.most:.2f}), {cpu.median:.2f} times the cost ({cpu.least:.2f} to {cpu.most:.2f})"
        )


if __name__ == "__main__":
    main()
