"""Without a defect the reference server keeps everything, under every value of every option."""

import json

import pytest
from matrix import play
from option_sets import OPTIONS

from continuity_conformance.core.budget import Budget
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.target.profile import DEFAULT_OPTIONS
from continuity_spec import load_spec
from continuity_spec.load.loader import BUNDLED

LITTLE = Budget(examples=2)
"""Random testing with the whole budget is what tests/e2e/test_wheel.py does, under the default options."""
UNTOLD = {
    "derivation-beats-header": "DERIVE-14",
    "environment-apart-though-shared": "ENV-02",
    "errors-without-code": "ERROR-03",
    "responses-ignore-header": "ECHO-11",
    "slug-lost-on-eviction": "SLUG-03",
    "slug-lost-on-restart": "SLUG-04",
    "slug-mapping-in-response-cache": "SLUG-05",
    "slug-race-many-sessions": "SLUG-12",
    "slug-race-loses-turns": "SLUG-12",
}
"""Defects that a target which tells nothing can have as well, and what is failed by each of them then."""
RACES = {"slug-race-many-sessions": 5, "slug-race-loses-turns": 5}
"""How often a race is played: on a busy machine the first of twenty turns may be stored before the second one arrives."""


def _values() -> dict[str, list[str]]:
    schema = json.loads((BUNDLED / "schemas" / "profile.schema.json").read_text(encoding="utf-8"))
    return {name: one["enum"] for name, one in schema["properties"]["options"]["properties"].items()}


def test_the_sets_have_every_value_of_every_option():
    stated = {(name, value) for options in OPTIONS.values() for name, value in {**DEFAULT_OPTIONS, **options}.items()}

    # The bundled server never truncates: tests/kit/scenario/test_compressing_servers.py has servers that do.
    unplayed = {("tells", "nothing"), ("announces", "other"), ("compaction", "truncate")}
    assert stated | unplayed == {(name, value) for name, values in _values().items() for value in values}


@pytest.mark.parametrize("name", [name for name, options in OPTIONS.items() if options])
def test_without_a_defect_nothing_fails_and_nothing_is_untested(name):
    """What is left is for a reviewer."""
    undecided = {
        result.id: result.failure or result.reason
        for result in play(options=OPTIONS[name], budget=LITTLE)
        if result.verdict not in {Verdict.PASS, Verdict.NOT_APPLICABLE}
    }

    assert undecided == {
        entry.id: f"a reviewer answers: {entry.manual}"
        for entry in load_spec().requirements
        if entry.manual is not None
    }


def test_a_target_that_tells_nothing_fails_nothing():
    """The session is unobserved, not failed."""
    failed = {
        result.id for result in play(options={"tells": "nothing"}, budget=LITTLE) if result.verdict is Verdict.FAIL
    }

    assert failed == set()


def test_every_scenario_for_a_target_that_tells_nothing_can_fail():
    """The matrix is measured on a server that tells its sessions, where these are not applicable."""
    written = {
        (entry.id, scenario.name)
        for entry in load_spec().requirements
        for scenario in entry.scenarios
        if scenario.when.get("tells") == ("nothing",)
    }

    failed = {
        (result.id, one.scenario)
        for defect, identity in UNTOLD.items()
        for _ in range(RACES.get(defect, 1))
        for result in play([f"--defect={defect}"], {"tells": "nothing"}, [load_spec().requirement(identity)])
        for one in result.evidence
        if one.outcome is Verdict.FAIL
    }

    assert written <= failed
