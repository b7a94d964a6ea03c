"""The kill matrix: the suite played on every defect, and which requirement fails at which step and expectation.

On each defect all calm requirements are played, and of those that disturb the server (restart, kill, broken store) the ones made for that
defect: a restart costs as much as forty turns, and what it shows of other defects the calm ones show too. The test plays on each defect the
areas that it was made for, and compares that part of the file.

`python tests/matrix/matrix.py` writes the committed file anew; with names of defects it only prints what fails on them.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from continuity_conformance.checks import disturbs
from continuity_conformance.run import Run
from continuity_conformance.verdicts import Result, Verdict
from continuity_plugins.reference import reference_profile
from continuity_spec import Requirement, load

FILE = Path(__file__).parents[2] / "docs" / "reference" / "matrix.json"
UNSTEADY = frozenset(
    {
        "constant-default-session",
        "slugs-share-a-session",
        "slug-race-many-sessions",
        "slug-race-loses-turns",
        "rotation-race-two-children",
        "migration-race-second-process-dies",
        "migration-not-atomic",
    }
)
"""Defects that are races, or that mix scenarios which play side by side: who comes first decides what else fails, and where it shows first."""
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
    extra: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    requirements: Sequence[Requirement] | None = None,
) -> list[Result]:
    """The results of the suite, or of these requirements, on a reference server of its own."""
    played = load().requirements if requirements is None else requirements
    run = Run(None, reference_profile(tuple(extra), options), played)
    try:
        run.open()
        return [run.result(requirement.id) for requirement in played]
    finally:
        run.close()


def made_for(defect: str) -> list[Requirement]:
    return [requirement for requirement in load().requirements if defect in requirement.refuted_by]


def played_on(defect: str, areas: Collection[str]) -> list[Requirement]:
    """What is played on a defect: what was made for it, and everything calm of these areas."""
    return [
        requirement
        for requirement in load().requirements
        if defect in requirement.refuted_by or (requirement.area in areas and not disturbs(requirement))
    ]


def everywhere(defect: Defect) -> dict[str, str]:
    """A row of the published matrix."""
    return failures(defect, {requirement.area for requirement in load().requirements})


def at_home(defect: Defect) -> dict[str, str]:
    """The part of a row that the test measures: the areas that the defect was made for."""
    return failures(defect, {requirement.area for requirement in made_for(defect.name)})


def failures(defect: Defect, areas: Collection[str]) -> dict[str, str]:
    """Which requirements fail under a defect, each with the scenario, step and expectation that show it first."""
    results = play([f"--defect={defect.name}"], defect.under, played_on(defect.name, areas))
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


def rows(found: Sequence[Defect], row: Callable[[Defect], dict[str, str]]) -> dict[str, dict[str, str]]:
    """The rows of these defects, played side by side."""
    with ProcessPoolExecutor(_SIDE_BY_SIDE) as pool:
        played = list(pool.map(row, found))
    return {defect.name: failed for defect, failed in zip(found, played, strict=True)}


def main(names: Sequence[str]) -> None:
    measured = rows([defect for defect in defects() if not names or defect.name in names], everywhere)
    text = json.dumps(measured, indent=1, ensure_ascii=False) + "\n"
    if names:
        sys.stdout.write(text)
    else:
        FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
