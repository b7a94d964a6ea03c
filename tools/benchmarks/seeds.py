"""Whether random testing finds the defects that no scenario finds, within the default budget, whatever the seed.

    python tools/benchmarks/seeds.py [--seeds 1 2 3 4 5] [DEFECT ...]

Every defect that a requirement of CONTRACT names is played with every seed. Exit 1 where one was missed.
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product

from continuity_conformance.core.budget import Budget
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.run.session import Run
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import load_spec

Case = tuple[str, str, int]
"""A requirement, a defect that it names, and a seed."""


def found(case: Case) -> bool:
    requirement, defect, seed = case
    profile = reference_profile((f"--defect={defect}",))
    with Run(resolve(None, profile), [load_spec().requirement(requirement)], Budget(seed=seed)) as run:
        return run.result(requirement).verdict is Verdict.FAIL


def cases(seeds: Sequence[int], wanted: Sequence[str]) -> list[Case]:
    contract = [each for each in load_spec().requirements if each.area == "CONTRACT"]
    named = [(each.id, defect) for each in contract for defect in each.refuted_by if not wanted or defect in wanted]
    return [(requirement, defect, seed) for (requirement, defect), seed in product(named, seeds)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("defects", nargs="*", metavar="DEFECT")
    said = parser.parse_args()
    asked = cases(said.seeds, said.defects)
    with ProcessPoolExecutor(2) as pool:
        results = []
        for case, hit in zip(asked, pool.map(found, asked), strict=True):
            results.append(hit)
            print(f"{case[0]} {case[1]} seed {case[2]}: {'found' if hit else 'MISSED'}", flush=True)
    print(f"{sum(results)} of {len(results)} found")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
