"""A failure that a more basic requirement explains is blocked by it; any other failure stays."""

from dataclasses import replace

import pytest

from continuity_conformance.core.verdicts import Evidence, Result, Verdict, undecided
from continuity_conformance.results.blocked import blocked
from continuity_conformance.run.session import Run
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import load_spec

SPEC = load_spec()
BASIC, RESTING = SPEC.requirement("HISTORY-02"), SPEC.requirement("HISTORY-08")


def failed(requirement, *kinds: tuple[str, ...]) -> Result:
    evidence = tuple(
        Evidence(scenario.name, "", Verdict.FAIL if each else Verdict.PASS, "why", failure="text", kinds=each)
        for scenario, each in zip(requirement.scenarios, kinds, strict=False)
    )
    verdict = Verdict.FAIL if any(kinds) else Verdict.PASS
    return replace(undecided(requirement, verdict, "why"), evidence=evidence, failure="text")


def test_the_same_kind_of_failure_is_blocked():
    result = blocked(RESTING, failed(RESTING, ("doubled",)), {BASIC.id: failed(BASIC, ("doubled",))})

    assert (result.verdict, result.reason, result.blocked_by) == (Verdict.NOT_TESTED, "blocked by HISTORY-02", BASIC.id)
    assert result.failure == ""


@pytest.mark.parametrize("kinds", [("missing",), ("doubled", "missing"), ("status 500",)])
def test_another_kind_of_failure_stays(kinds):
    result = blocked(RESTING, failed(RESTING, kinds), {BASIC.id: failed(BASIC, ("doubled",))})

    assert (result.verdict, result.blocked_by) == (Verdict.FAIL, "")


@pytest.mark.parametrize(("kind", "verdict"), [("doubled", Verdict.NOT_TESTED), ("missing", Verdict.FAIL)])
def test_a_foundation_with_a_kind_explains_only_failures_of_this_kind(kind, verdict):
    """A turn that is not there yet is what HISTORY-03 is about, also if HISTORY-02 fails in the same way."""
    late = SPEC.requirement("HISTORY-03")

    assert late.rests_on == ("HISTORY-02",)
    assert blocked(late, failed(late, (kind,)), {BASIC.id: failed(BASIC, (kind,))}).verdict is verdict


@pytest.mark.parametrize("identity", ["HISTORY-03", "SLUG-01", "SLUG-22", "CONCUR-02", "CONCUR-03", "DERIVE-15"])
def test_a_doubled_history_is_one_failure(identity):
    """These are about turns that are late or mixed, so a history that is there twice says nothing about them."""
    other = SPEC.requirement(identity)

    assert blocked(other, failed(other, ("doubled",)), {BASIC.id: failed(BASIC, ("doubled",))}).blocked_by == BASIC.id


def test_one_scenario_that_fails_on_its_own_is_enough_for_a_failure():
    result = blocked(RESTING, failed(RESTING, ("doubled",), ("missing",)), {BASIC.id: failed(BASIC, ("doubled",))})

    assert result.verdict is Verdict.FAIL
    assert [each.outcome for each in result.evidence] == [Verdict.NOT_TESTED, Verdict.FAIL]


@pytest.mark.parametrize("others", [{}, {BASIC.id: failed(BASIC, ())}])
def test_a_requirement_that_passed_or_was_not_played_blocks_nothing(others):
    assert blocked(RESTING, failed(RESTING, ("doubled",)), others).verdict is Verdict.FAIL


def test_a_blocked_requirement_passes_its_cause_on():
    between = replace(failed(BASIC, ("doubled",)), verdict=Verdict.NOT_TESTED, blocked_by="SLUG-01")

    assert blocked(RESTING, failed(RESTING, ("doubled",)), {BASIC.id: between}).blocked_by == "SLUG-01"


def played(*defects: str) -> dict[str, Result]:
    profile = reference_profile(tuple(f"--defect={each}" for each in defects))
    with Run(resolve(None, profile), [BASIC, RESTING]) as run:
        return {each.id: each for each in run.as_decided()}


def test_a_defect_is_hidden_by_nothing_once_the_blocking_one_is_fixed():
    """The doubled history explains what HISTORY-08 shows; without it the failed turn is seen."""
    both = played("history-doubles", "error-text-as-answer")
    fixed = played("error-text-as-answer")

    assert both["HISTORY-02"].verdict is Verdict.FAIL
    assert both["HISTORY-08"].verdict in {Verdict.NOT_TESTED, Verdict.FAIL}
    assert fixed["HISTORY-02"].verdict is Verdict.PASS
    assert fixed["HISTORY-08"].verdict is Verdict.FAIL


def test_a_defect_alone_blocks_what_rests_on_it():
    results = played("history-doubles")

    assert results["HISTORY-02"].verdict is Verdict.FAIL
    assert results["HISTORY-08"].reason == "blocked by HISTORY-02"
