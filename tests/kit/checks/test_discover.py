"""What a target says of itself is concluded from the results of the run, or tried."""

from collections.abc import Mapping

import pytest

from continuity_conformance.checks.registry import CONCLUDING
from continuity_conformance.checks.support.claims import PROVEN_BY, UNPROVABLE
from continuity_conformance.checks.support.trials import TRIALS
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.run.session import Run
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import load_spec
from continuity_spec.load.schema import schema

OPTIONS = schema("profile")["properties"]["options"]["properties"]
OFFERS = [offer for offer in schema("profile")["properties"]["offers"]["items"]["enum"] if offer != "chat"]
"""Every target is taken to offer chat, so that is no claim."""
DISCOVER_02 = load_spec().requirement("DISCOVER-02")


def played(*others: str, defect: str = "", options: Mapping[str, str] | None = None):
    """The result of DISCOVER-02 in a run with these others."""
    requirements = [*(load_spec().requirement(other) for other in others), DISCOVER_02]
    with Run(resolve(None, reference_profile((f"--defect={defect}",) if defect else (), options)), requirements) as run:
        return run.result("DISCOVER-02")


@pytest.mark.parametrize("claim", [f"{option}: {value}" for option in OPTIONS for value in OPTIONS[option]["enum"]])
def test_every_option_value_is_proven_or_tried(claim):
    assert (claim in PROVEN_BY) != (claim in TRIALS)


@pytest.mark.parametrize("offer", OFFERS)
def test_every_offer_is_proven_where_it_is_made_and_tried_where_not(offer):
    assert (f"offers {offer}" in PROVEN_BY) != (f"offers {offer}" in UNPROVABLE)
    assert f"no {offer}" in TRIALS or offer == "replicas"


def test_claims_rest_on_requirements_that_there_are():
    provers = {prover for listed in PROVEN_BY.values() for prover in listed}

    assert provers <= {requirement.id for requirement in load_spec().requirements}
    assert not any(load_spec().requirement(prover).check in CONCLUDING for prover in provers)


def test_without_any_verdict_that_a_claim_rests_on_nothing_is_concluded():
    result = played()

    assert result.verdict is Verdict.NOT_TESTED
    assert "no claim rests on a requirement that passed" in result.reason


def test_requirements_that_are_not_part_of_the_run_are_not_missed():
    """Otherwise a run of one class could never be conformant."""
    assert played("ECHO-02").verdict is Verdict.PASS


def test_a_claim_whose_requirement_could_not_be_tested_is_not_believed():
    result = played("ECHO-02", "HISTORY-02", "COMPRESS-01", defect="history-doubles")

    assert result.verdict is Verdict.NOT_TESTED
    assert "which did not pass" in result.reason


def test_a_verdict_against_a_claim_refutes_it():
    result = played("DERIVE-12", defect="claims-content-v2")

    assert result.verdict is Verdict.FAIL
    assert "derivation: content-v2" in result.failure
    assert "DERIVE-12 fails" in result.failure


def test_what_is_said_not_to_be_there_is_tried():
    result = played(defect="hides-responses")

    assert result.verdict is Verdict.FAIL
    assert "POST /v1/responses shows otherwise (200)" in result.failure


def test_a_target_that_declares_nothing_claims_nothing():
    assert played(defect="capabilities-missing").verdict is Verdict.NOT_APPLICABLE


def test_what_a_profile_says_is_no_claim_of_the_target():
    assert (
        played(defect="capabilities-missing", options={"environment": "per-session"}).verdict is Verdict.NOT_APPLICABLE
    )


def test_a_claim_is_not_refuted_by_a_failure_that_does_not_contradict_it():
    result = played("ECHO-02", defect="echo-lowercases-id")

    assert result.verdict is Verdict.NOT_TESTED
    assert "the claim “header” rests on ECHO-02, which did not pass" in result.reason
