"""The kill matrix: the suite played on every defect, and which requirement fails at which step and expectation.

On each defect the areas that it was made for are played, and what the requirements made for it rest on, which must not block them. Of the costly
requirements (restart, kill, broken store, dozens of examples, a thousand requests) only those made for it are played, unless the defect is judged on everything that
was said: all areas on all defects take half an hour, and say little more. The test measures
the same rows and compares them (tests/e2e/test_matrix.py).

`python tools/matrix/matrix.py` writes the committed files (the list of defects, the matrix) and the page in the docs; with names of defects it plays all areas on
these and only prints what fails.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from typing import Protocol, TypeVar

from defect_list import write_list
from page import write_page

from continuity_conformance.checks.registry import COSTLY, disturbs
from continuity_conformance.core.budget import Budget
from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.diagnose.causes import causes
from continuity_conformance.run.session import Run
from continuity_conformance.suite.defects import ListedDefect, defects, find
from continuity_conformance.suite.matrix import FILE
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import Requirement, load_spec

_LATE = [
    *(f"DURABLE-{number:02}" for number in range(1, 5)),
    *("ECHO-02", "ECHO-05", "HISTORY-02", "HISTORY-03", "HISTORY-04", "SLUG-02", "SLUG-13"),
]
"""What a client sees that is quicker than a commit 30 ms after its answer."""
UNSTEADY: Mapping[str, Collection[str]] = {
    "constant-default-session": [f"DERIVE-{number:02}" for number in (1, 2, 3, 5, 6, 7, 8, 9, 10, 13, 14)],
    "slugs-share-a-session": ["HISTORY-02", *(f"SLUG-{number:02}" for number in (2, 3, 7, 8, 9, 10, 12, 18, 22))],
    "chain-stored-late": ["HISTORY-02", "HISTORY-03", *(f"SLUG-{number:02}" for number in range(1, 29))],
    "streamed-chain-stored-late": ["HISTORY-02", "HISTORY-03", *(f"SLUG-{number:02}" for number in range(1, 29))],
    "empty-header-is-an-id": ("ECHO-14",),
    "slug-race-many-sessions": (),
    "slug-race-loses-turns": (),
    "rotation-race-two-children": (),
    "migration-race-second-process-dies": (),
    "processes-do-not-wait": (),
    "slug-raced-by-processes": (),
    "migration-not-atomic": (),
    "turns-share-a-base": ("CONCUR-04", "CONCUR-07", "ECHO-11"),
    "turns-at-once-are-500": ("CONCUR-04", "CONCUR-07", "ECHO-11", "SLUG-13"),
    "turns-interleave": ("CONCUR-04", "CONCUR-07", "ECHO-11", "SLUG-13"),
    "streams-stored-for-the-latest-principal": [
        *(f"CONCUR-{number:02}" for number in range(1, 6)),
        *("ECHO-02", "ECHO-11", "HISTORY-02", "SLUG-13"),
    ],
    "answers-before-commit-plain": _LATE,
    "answers-before-commit-streamed": _LATE,
    "turns-stored-as-the-latest-said": ("CONCUR-01", "CONCUR-03", "CONCUR-04", "CONCUR-07", "HISTORY-02"),
    "session-told-of-the-latest-request": ("CONCUR-01", "CONCUR-03", "CONCUR-04"),
    "one-lock-for-all-sessions": ("CONCUR-01", "CONCUR-02", "CONCUR-04", "CONCUR-07"),
    "one-lock-for-all-slugs": ("CONCUR-01", "CONCUR-02"),
    "branch-decided-too-early": ("SLUG-13",),
    "chain-locked-by-sent-id": (),
    "evicts-by-id": (),
    "pages-by-second": (),
    "delete-sweeps-replaced-histories": (),
    "first-requests-race-to-500": (),
    "first-requests-overwrite-each-other": (),
    "path-id-reads-file": ("ISOLATE-04",),
    "hang-up-leaves-half-turn": (),
    "hang-up-leaves-cut-answer": (),
    "hang-up-locks-session": (),
    "delete-takes-shared-environment": ("ENV-02", "ENV-03"),
    "held-lock-forgotten": ("CONCUR-01", "CONCUR-02", "CONCUR-03", "CONCUR-04"),
}
"""Defects that are races, or that mix scenarios which play side by side: who comes first decides where it shows first, and which of these fail
besides what the defect was made for."""


class HasName(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T")
Named = TypeVar("Named", bound=HasName)
_MANY_STEPS = 30
LITTLE = Budget(examples=6)
"""Half of what a run has; with four, evicted-slug-misses-rotation is not found."""
EVERY_AREA = frozenset(requirement.area for requirement in load_spec().requirements)
_SIDE_BY_SIDE = 5
"""More than the cores that it is meant for: many rows wait for turns that never end."""
_TURN_SECONDS = 8.0
"""How long such a turn is waited for: a hundred times as long as any other turn takes. One that is late for another reason is played again (`scenario.doubt`)."""


def play(
    extra: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    requirements: Sequence[Requirement] | None = None,
    budget: Budget | None = None,
) -> list[Result]:
    """The results of the suite, or of these requirements, on a reference server of its own."""
    played = load_spec().requirements if requirements is None else requirements
    profile = reference_profile(tuple(extra), options)
    profile = replace(profile, limits=replace(profile.limits, turn_seconds=_TURN_SECONDS))
    with Run(resolve(None, profile), played, budget) as run:
        return [run.result(requirement.id) for requirement in played]


def made_for(defect: str) -> list[Requirement]:
    return [requirement for requirement in load_spec().requirements if defect in requirement.refuted_by]


def at_home(defect: ListedDefect) -> dict[str, str]:
    """A row of the matrix: the areas that the defect was made for."""
    return failures(_on_its_areas(defect))


def everywhere(defect: ListedDefect) -> dict[str, str]:
    """The same with all areas."""
    return failures(played(defect, EVERY_AREA))


def diagnosed(defect: ListedDefect) -> tuple[dict[str, str], str | None]:
    """A row of the matrix, and which defect the diagnosis of the same run names first."""
    results = _on_its_areas(defect)
    return failures(results), next((cause.defect for cause in causes(results)), None)


def _on_its_areas(defect: ListedDefect) -> list[Result]:
    return played(defect, {requirement.area for requirement in made_for(defect.name)})


def played(defect: ListedDefect, areas: Collection[str]) -> list[Result]:
    """The results of these areas on a defect."""
    return play([f"--defect={defect.name}"], defect.under, played_on(defect, areas), LITTLE)


def failures(results: Iterable[Result]) -> dict[str, str]:
    """The requirements that fail, each with the scenario, step and expectation that show it first."""
    return {result.id: _where(result) for result in results if result.verdict in {Verdict.FAIL, Verdict.ERROR}}


def played_on(defect: ListedDefect, areas: Collection[str]) -> list[Requirement]:
    """The requirements of these areas that are worth their time on a defect, and those that it was made for."""
    own = made_for(defect.name)
    on_everything = any(requirement.always is not None for requirement in own)
    may_block = {identity for requirement in own for identity in requirement.rests_on}
    return [
        requirement
        for requirement in load_spec().requirements
        if requirement in own
        or (requirement.id in may_block and not _costs(requirement))
        or (
            requirement.area in areas
            and not _costs(requirement)
            and (on_everything or requirement.length <= _MANY_STEPS)
        )
    ]


def _costs(requirement: Requirement) -> bool:
    return disturbs(requirement) or requirement.check in COSTLY


def _where(result: Result) -> str:
    if result.verdict is Verdict.ERROR:
        return f"error: {result.reason}"  # of the kit; the test refuses a matrix that has one
    first = next(one for one in result.evidence if one.outcome is Verdict.FAIL)
    if load_spec().requirement(result.id).always is not None:
        return first.expectation  # which answer shows it first depends on who comes first
    number = first.step.partition(" ")[0]
    # A Python check names what it does where it has no number: "the openai client", or "load" before the step.
    named, played, _ = first.step.partition(" {")
    own = [named.rpartition(" ")[0] if played else named, first.expectation]
    step = [f"step {number}", first.expectation] if number[:1].isdigit() else own
    if first.expectation == "claim":
        step = [named.partition(" ")[2], first.expected]  # which claim is untrue; it is concluded last, in no step
    return " · ".join([first.scenario, *step] if first.scenario else step)


def rows(found: Sequence[Named], row: Callable[[Named], T]) -> dict[str, T]:
    """The rows of these defects, played side by side, in their order."""
    with (
        tempfile.TemporaryDirectory() as scratch,  # some defects leave files where they are started
        ProcessPoolExecutor(_SIDE_BY_SIDE, initializer=os.chdir, initargs=(scratch,)) as pool,
    ):
        playing = {pool.submit(row, defect): defect.name for defect in found}
        for number, done in enumerate(as_completed(playing), 1):
            print(f"{number} of {len(found)}: {playing[done]}", file=sys.stderr, flush=True)
    return {name: done.result() for done, name in playing.items()}


def main(names: Sequence[str]) -> None:
    if names:
        found = rows([find(name, defects()) for name in names], everywhere)
        sys.stdout.write(as_json(found))
    else:
        write_list()
        FILE.write_text(as_json(rows(list(defects().values()), at_home)), encoding="utf-8")
        write_page()


def as_json(matrix: Mapping[str, Mapping[str, str]]) -> str:
    return json.dumps(matrix, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
