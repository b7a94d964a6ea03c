"""Profiles for servers that demand something of every request, and a server that demands it."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.run.session import Run
from continuity_conformance.target.profile import Profile
from continuity_conformance.target.profile_file import load_profile
from continuity_conformance.target.resolve import ResolvedTarget
from continuity_spec import load_spec

SERVER = Path(__file__).parents[2] / "servers" / "demanding.py"
COMMON = """
header: X-Chat-Id
options: {derivation: none, compaction: in-place, environment: none}
offers: [streaming, responses]
"""
DEMANDS = {
    "uuid": "ids: uuid",
    "agent": "body_fields: {agent_id: $AGENT}",
    "no-model": "body_names: {model: none}",
    "conversation_id": "body_names: {conversation: conversation_id}",
    "users": "principals: {alice: {headers: {X-User-Id: alice}}, bob: {headers: {X-User-Id: bob}}}",
}


def profile(folder: Path, demands: list[str], lines: list[str], base: str = "") -> Profile:
    words = [sys.executable, str(SERVER), "{port}", "{probe}", *demands]
    path = folder / "profile.yaml"
    path.write_text("\n".join([COMMON, *lines, f"process: {{start: {words}, warm_up: 20{base}}}"]), encoding="utf-8")
    return load_profile(path)


def played(profile: Profile, *ids: str) -> dict[str, Result]:
    requirements = [each for each in load_spec().requirements if each.id in ids]
    with Run(ResolvedTarget(profile, "", "demanding"), requirements) as run:
        return {each.id: run.result(each.id) for each in requirements}


def verdicts(results: dict[str, Result]) -> dict[str, Verdict]:
    return {identity: result.verdict for identity, result in results.items()}


@pytest.fixture(autouse=True)
def agent(monkeypatch):
    monkeypatch.setenv("AGENT", "agent-7")


@pytest.mark.parametrize("demand", DEMANDS)
def test_a_target_that_demands_it_is_examined_with_the_key_of_the_profile(demand, tmp_path):
    demanding = profile(tmp_path, [demand], [DEMANDS[demand]])

    results = played(demanding, "HISTORY-02", "ECHO-02", "SLUG-02")

    assert set(verdicts(results).values()) == {Verdict.PASS}, [each.failure for each in results.values()]


def test_a_base_path_goes_with_a_process_and_not_with_its_health(tmp_path):
    results = played(profile(tmp_path, ["base"], [], ", base: /api/v1"), "HISTORY-02")

    assert verdicts(results) == {"HISTORY-02": Verdict.PASS}


def test_an_id_of_another_form_may_be_refused_and_is_no_failure(tmp_path):
    results = played(profile(tmp_path, ["uuid"], ["ids: uuid"]), "ISOLATE-05", "ISOLATE-09", "SLUG-14")

    assert Verdict.FAIL not in verdicts(results).values(), [each.failure for each in results.values()]


def test_without_the_form_of_ids_the_same_target_fails(tmp_path):
    lenient = profile(tmp_path, ["uuid"], [])

    assert verdicts(played(lenient, "HISTORY-02"))["HISTORY-02"] is Verdict.FAIL


def test_an_empty_header_is_no_id_of_another_form(tmp_path):
    strict, lenient = (profile(tmp_path, ["uuid", *more], ["ids: uuid"]) for more in (["header"], []))

    assert verdicts(played(strict, "ECHO-04")) == {"ECHO-04": Verdict.FAIL}
    assert verdicts(played(lenient, "ECHO-04")) == {"ECHO-04": Verdict.PASS}


def test_principals_by_headers_are_two_people_and_have_no_keys(tmp_path):
    results = played(profile(tmp_path, ["users"], [DEMANDS["users"]]), "ISOLATE-06", "ISOLATE-01", "CONTRACT-08")

    assert verdicts(results)["ISOLATE-01"] is Verdict.NOT_APPLICABLE
    assert verdicts(results)["CONTRACT-08"] is Verdict.NOT_APPLICABLE
    assert verdicts(results)["ISOLATE-06"] is Verdict.PASS, results["ISOLATE-06"].failure


def test_generated_requests_meet_the_demands_too(tmp_path):
    demands = ["uuid", "agent", "no-model", "conversation_id"]
    lines = ["ids: uuid", "body_fields: {agent_id: $AGENT}", "body_names: {model: none, conversation: conversation_id}"]

    results = played(profile(tmp_path, demands, lines), "CONTRACT-06", "CONTRACT-11", "CONTRACT-01")

    assert verdicts(results)["CONTRACT-06"] is Verdict.PASS, results["CONTRACT-06"].reason
    assert verdicts(results)["CONTRACT-11"] is Verdict.PASS, results["CONTRACT-11"].reason
    assert verdicts(results)["CONTRACT-01"] is Verdict.PASS, results["CONTRACT-01"].reason


MADE = "slugs: made"
OWN_FIELDS = "body_fields: {agent_id: $AGENT}"
OWN_NAMES = "body_names: {conversation: conversation_id}"
OF_A_CONVERSATION = "conversation_fields: {agent_id: $AGENT}"


def test_a_conversation_is_made_with_the_fields_that_the_target_wants(tmp_path):
    demands = ["agent", "made", "conversation_id"]
    lines = [MADE, OWN_FIELDS, OWN_NAMES, OF_A_CONVERSATION]

    demanding = profile(tmp_path, demands, lines)
    offers = frozenset({"streaming", "responses", "conversations"})
    results = played(replace(demanding, offers=offers), "SLUG-02", "SLUG-24")

    assert verdicts(results)["SLUG-02"] is Verdict.PASS, results["SLUG-02"].failure
    used = [each for each in results["SLUG-24"].evidence if each.scenario.startswith("used as a slug")]
    assert [each.outcome for each in used] == [Verdict.PASS, Verdict.NOT_APPLICABLE]


def test_without_these_fields_no_conversation_can_be_made(tmp_path):
    results = played(profile(tmp_path, ["agent", "made", "conversation_id"], [MADE, OWN_FIELDS, OWN_NAMES]), "SLUG-02")

    assert verdicts(results)["SLUG-02"] is not Verdict.PASS


@pytest.mark.parametrize(
    ("conversation", "sent"), [("a", {"conversation_id": "a"}), ({"id": "a"}, {"conversation_id": "a"}), (None, {})]
)
def test_a_field_of_ones_own_in_place_of_conversation_takes_a_text(conversation: object, sent: dict[str, str]):
    own = Profile("x", body_names={"conversation": "conversation_id"})

    assert own.turn_body({"conversation": conversation}) == sent
    assert Profile("x").turn_body({"conversation": conversation}) == {"conversation": conversation}


def test_a_target_may_refuse_the_header_on_responses(tmp_path):
    """ECHO-11 allows it, so nothing that rests on the header there may fail, or be left untested."""
    users = DEMANDS["users"]
    results = played(
        profile(tmp_path, ["users", "chat-header"], [users]), "HISTORY-02", "ECHO-11", "SLUG-20", "ISOLATE-06"
    )

    failures = {identity: each.failure or each.reason for identity, each in results.items()}
    assert set(verdicts(results).values()) == {Verdict.PASS}, failures
