"""Calibration: a target that keeps no conversations on chat is examined over /v1/responses."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from continuity_conformance.core.budget import Budget
from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.results.ledger import TargetFacts
from continuity_conformance.run.session import Run
from continuity_conformance.target.profile import Process, Profile
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import load_spec

SERVER = Path(__file__).parents[2] / "servers" / "responses_only.py"
IDS = (
    "HISTORY-02",
    "HISTORY-03",
    "HISTORY-04",
    "HISTORY-08",
    "HISTORY-12",
    "HISTORY-16",
    "STREAM-01",
    "STREAM-03",
    "STREAM-04",
)


def responses_only(**more: object) -> Profile:
    process = Process((sys.executable, str(SERVER), "{port}", "{probe}"))
    return Profile("responses only", process=process, options={"tells": "nothing"}, **more)  # type: ignore[arg-type]


def played(profile: Profile) -> tuple[TargetFacts, dict[str, Result]]:
    requirements = [each for each in load_spec().requirements if each.id in IDS]
    with Run(resolve(None, profile), requirements) as run:
        return run.facts, {each.id: run.result(each.id) for each in requirements}


@pytest.mark.parametrize("given", [{"chat": "none"}, {}], ids=["the profile says so", "chat is 404"])
def test_a_target_without_chat_is_observed_and_decided_over_responses(given):
    facts, results = played(responses_only(**given))

    assert facts.observed == "probe"
    assert "chat" not in facts.offers
    assert "responses" in facts.offers
    assert {result.verdict for result in results.values()} == {Verdict.PASS}


def test_a_target_offers_chat_unless_its_profile_says_otherwise():
    kept, _ = played(replace(reference_profile(), offers=frozenset({"responses", "streaming"})))
    none, _ = played(replace(reference_profile(), chat="none"))

    assert "chat" in kept.offers
    assert "chat" not in none.offers


def test_a_target_warms_up_over_responses_if_it_keeps_no_chat():
    profile = responses_only(chat="none")
    assert profile.process is not None

    facts, _ = played(replace(profile, process=replace(profile.process, warm_up=10.0)))

    assert facts.observed == "probe"


def test_a_target_that_refuses_unknown_ids_has_chat_all_the_same(monkeypatch):
    monkeypatch.setenv("CONTINUITY_REFERENCE", "--defect unknown-id-is-404")
    facts, results = played(resolve("reference").profile)

    assert "chat" in facts.offers
    assert results["HISTORY-04"].verdict is Verdict.FAIL


def test_generated_requests_go_to_responses_where_there_is_no_chat():
    requirements = [
        each for each in load_spec().requirements if each.id in {"CONTRACT-04", "CONTRACT-06", "CONTRACT-07"}
    ]
    with Run(resolve(None, responses_only(chat="none")), requirements, Budget(examples=1)) as run:
        results = [run.result(each.id) for each in requirements]
    asked = [exchange["request"]["url"] for result in results for one in result.evidence for exchange in one.exchanges]

    assert {result.verdict for result in results} <= {Verdict.PASS, Verdict.FAIL}
    assert any("/v1/responses" in url for url in asked)
    assert not [url for url in asked if "/v1/chat" in url]
