"""A failure that may be the kit's fault is played again, alone and once; no other failure is."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from continuity_conformance.core.errors import UnreachableError
from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.run.session import Run
from continuity_conformance.target.profile import Limits, Process, Profile
from continuity_conformance.target.resolve import resolve
from continuity_spec import load_spec

SERVER = Path(__file__).parents[2] / "servers" / "moody.py"


def _profile(mood: str) -> Profile:
    process = Process((sys.executable, str(SERVER), mood, "{port}", "{probe}"))
    return Profile(mood, process=process, single_user=True, limits=Limits(parallel=2, turn_seconds=3))


def _played(mood: str, *ids: str) -> dict[str, Result]:
    requirements = [load_spec().requirement(each) for each in ids]
    with Run(resolve(None, _profile(mood)), requirements) as run:
        return {each: run.result(each) for each in ids}


def _repetitions(result: Result) -> list[str]:
    notes = [note for one in result.evidence for note in one.interventions or ()]
    return [str(note["how"]) for note in notes if note["does"] == "played again alone"]


@pytest.mark.parametrize(
    ("mood", "why"),
    [
        ("stale once", "because the first time a connection that had been used before was lost without one byte"),
        ("429 once", "because the first time the target answered 429"),
        ("slow once", "because the first time an answer did not come in time"),
    ],
)
def test_what_may_be_the_kits_fault_is_played_again_and_passes(mood, why):
    result = _played(mood, "HISTORY-02")["HISTORY-02"]

    assert result.verdict is Verdict.PASS, result.failure
    assert [note[: len(why)] for note in _repetitions(result)] == [why]


@pytest.mark.parametrize("mood", ["new lost once", "500 once"])
def test_every_other_failure_counts_at_once(mood):
    result = _played(mood, "HISTORY-02")["HISTORY-02"]

    assert result.verdict is Verdict.FAIL
    assert _repetitions(result) == []


def test_a_second_failure_counts():
    result = _played("stale always", "HISTORY-02")["HISTORY-02"]

    assert result.verdict is Verdict.FAIL
    assert _repetitions(result)
    assert "played again alone" in result.failure


def test_a_target_that_dies_ends_the_run():
    """What is not decided by then has no verdict: a dead target is not a target that fails."""
    with pytest.raises(UnreachableError) as death:
        _played("dies", "HISTORY-02", "HISTORY-03", "HISTORY-04")

    assert "The target died during the run" in str(death.value)
    assert "Segmentation fault" in str(death.value)


def test_the_time_of_a_requirement_is_the_time_in_which_it_plays():
    """With one place, the times of all requirements together are no longer than the run."""
    profile = _profile("500 once")
    requirements = [each for each in load_spec().requirements if each.id in {"ECHO-02", "ECHO-03", "HISTORY-02"}]
    given = replace(profile, limits=replace(profile.limits, parallel=1))
    with Run(resolve(None, given), requirements) as run:
        results = [run.result(each.id) for each in requirements]

    exchanges = [
        [one["at"] + one["seconds"] for one in each.exchanges] for result in results for each in result.evidence
    ]
    assert sum(result.seconds for result in results) < sum(max(each, default=0.0) for each in exchanges) + 1.0
