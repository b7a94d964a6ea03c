"""The kill matrix: the suite played on every defect, and which requirement fails at which step and expectation.

On each defect all calm requirements are played, and of those that disturb the server (restart, kill, broken store) the ones made for that
defect: a restart costs as much as forty turns, and what it shows of other defects the calm ones show too.

`python tests/matrix/matrix.py` writes the committed file anew; with names of defects it only prints what fails on them.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from continuity_conformance.checks import disturbs
from continuity_conformance.run import Run
from continuity_conformance.verdicts import Result, Verdict
from continuity_plugins.reference import reference_profile
from continuity_spec import Requirement, load

FILE = Path(__file__).parents[2] / "docs" / "reference" / "matrix.json"
RACES: frozenset[str] = frozenset()
"""Requirements whose failure depends on who comes first: they may fail under any defect."""
_SIDE_BY_SIDE = 2


@dataclass(frozen=True)
class Defect:
    name: str
    text: str
    issue: str | None
    under: Mapping[str, str]


def defects() -> list[Defect]:
    """All defects of the reference server, as it lists them itself."""
    listed = subprocess.run([sys.executable, "-m", "continuity_server", "--defects"], check=True, capture_output=True)
    return [Defect(**one) for one in json.loads(listed.stdout)]


def play(
    extra: Sequence[str] = (), options: Mapping[str, str] | None = None, defect: str | None = None
) -> list[Result]:
    """The results of the suite on a reference server of its own; with a defect, of the part that is played on it."""
    requirements = [entry for entry in load().requirements if defect is None or _is_played(entry, defect)]
    run = Run(None, reference_profile(tuple(extra), options), requirements)
    try:
        run.open()
        return [run.result(requirement.id) for requirement in requirements]
    finally:
        run.close()


def _is_played(requirement: Requirement, defect: str) -> bool:
    return not disturbs(requirement) or defect in requirement.refuted_by


def failures(defect: Defect) -> dict[str, str]:
    """Which requirements fail under a defect, each with the scenario, step and expectation that show it first."""
    results = play([f"--defect={defect.name}"], defect.under, defect.name)
    broken = [result.id for result in results if result.verdict is Verdict.ERROR]
    assert not broken, f"{defect.name}: the kit could not decide {broken}"
    return {result.id: _where(result) for result in results if result.verdict is Verdict.FAIL}


def _where(result: Result) -> str:
    first = next(one for one in result.evidence if one.outcome is Verdict.FAIL)
    if load().requirement(result.id).always is not None:
        return first.expectation  # which answer shows it first depends on who comes first
    return " · ".join(
        part for part in (first.scenario, f"step {first.step.partition(' ')[0]}", first.expectation) if part
    )


def matrix(found: Sequence[Defect]) -> dict[str, dict[str, str]]:
    """The rows of these defects, played side by side."""
    with ProcessPoolExecutor(_SIDE_BY_SIDE) as pool:
        rows = list(pool.map(failures, found))
    return {defect.name: row for defect, row in zip(found, rows, strict=True)}


def cells(rows: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """The matrix without what may fail or not."""
    return {
        name: {identity: where for identity, where in row.items() if identity not in RACES}
        for name, row in rows.items()
    }


def main(names: Sequence[str]) -> None:
    rows = matrix([defect for defect in defects() if not names or defect.name in names])
    text = json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
    if names:
        sys.stdout.write(text)
    else:
        FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
