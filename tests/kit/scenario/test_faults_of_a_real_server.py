"""Faults that were measured by hand on a real server, and that scenarios once missed: each is found, by the requirement that it is about."""

import sys
from pathlib import Path

import pytest

from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.run.session import Run
from continuity_conformance.target.profile import Process, Profile
from continuity_conformance.target.resolve import resolve
from continuity_spec import load_spec

SERVERS = Path(__file__).parents[2] / "servers"


def played(identity: str, script: str, *words: str) -> Result:
    process = Process((sys.executable, str(SERVERS / script), "{port}", "{probe}", *words))
    profile = Profile(
        "as azure",
        chat="none",
        process=process,
        options={"tells": "nothing", "derivation": "none", "compaction": "in-place"},
        offers=frozenset({"responses"}),
    )
    requirement = next(each for each in load_spec().requirements if each.id == identity)
    with Run(resolve(None, profile), [requirement]) as run:
        return run.result(identity)


@pytest.mark.parametrize(
    ("fault", "identity", "scenario", "actual"),
    [
        ("half-turns", "HISTORY-16", "a slug", "red, blue (no answer), green"),
        ("forgets-slug", "SLUG-13", "the newest response of a slug", "blue, green"),
    ],
)
def test_the_fault_is_found(fault: str, identity: str, scenario: str, actual: str):
    result = played(identity, "as_azure.py", fault)

    found = {each.scenario: each.actual for each in result.evidence if each.outcome is Verdict.FAIL}
    assert found[scenario] == actual


@pytest.mark.parametrize("identity", ["HISTORY-16", "SLUG-13"])
def test_the_server_without_faults_passes(identity: str):
    assert played(identity, "responses_only.py").verdict is Verdict.PASS
