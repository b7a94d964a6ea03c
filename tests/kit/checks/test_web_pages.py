"""The checks about web pages: which targets they are about, and what shows a fault. (The defects of ISOLATE-17 and -18 are in the matrix.)"""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.run.session import Run
from continuity_conformance.target.profile import Process, Profile
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import load_spec

SERVERS = Path(__file__).parents[2] / "servers"
PAGES, NAMES = "ISOLATE-17", "ISOLATE-18"
KEYLESS = (sys.executable, "-m", "continuity_server", "--port={port}", "--model={probe}", "--db=:memory:")


def played(profile: Profile) -> dict[str, Result]:
    requirements = [load_spec().requirement(each) for each in (PAGES, NAMES)]
    with Run(resolve(None, profile), requirements) as run:
        return {each.id: run.result(each.id) for each in requirements}


def verdicts(profile: Profile) -> list[Verdict]:
    return [result.verdict for result in played(profile).values()]


def keyless(*arguments: str, **fields: object) -> Profile:
    return Profile("keyless", process=Process((*KEYLESS, *arguments)), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("more", [(), ("--cors=https://app.example",), ("--option=tells=nothing",)], ids=str)
def test_a_server_that_refuses_pages_of_other_sites_passes(more):
    assert verdicts(keyless(*more, origin="https://app.example")) == [Verdict.PASS, Verdict.PASS]


def test_a_server_may_answer_pages_as_it_likes_if_no_turn_runs():
    start = (sys.executable, str(SERVERS / "welcoming.py"), "{port}", "{probe}")

    assert verdicts(Profile("welcoming", process=Process(start))) == [Verdict.PASS, Verdict.PASS]


def test_a_server_that_every_site_may_call_fails_unless_its_profile_says_so():
    results = played(keyless("--cors=*"))

    assert results[PAGES].verdict is Verdict.FAIL
    assert results[PAGES].evidence[0].expectation == "ran"
    assert verdicts(keyless("--cors=*", any_origin=True)) == [Verdict.NOT_APPLICABLE, Verdict.NOT_APPLICABLE]


def test_a_server_is_not_judged_where_nobody_says_that_it_is_for_one_person():
    start = (sys.executable, str(SERVERS / "responses_only.py"), "{port}", "{probe}")
    profile = Profile("undeclared", process=Process(start))

    assert verdicts(profile) == [Verdict.NOT_TESTED, Verdict.NOT_TESTED]
    assert verdicts(replace(profile, single_user=True)) == [Verdict.FAIL, Verdict.FAIL]


@pytest.mark.parametrize("fields", [{"headers": {"X-Tenant": "a"}}, {"identities": {"alice": {"X-User": "a"}}}])
def test_what_no_page_can_send_protects_a_server(fields):
    assert verdicts(keyless(**fields)) == [Verdict.NOT_APPLICABLE, Verdict.NOT_APPLICABLE]


def test_a_server_with_keys_is_judged_only_where_it_can_be_started_without():
    profile = reference_profile()
    assert profile.process is not None
    locked = replace(profile, process=replace(profile.process, single_user=()))
    public = replace(profile, process=replace(profile.process, single_user=profile.process.keyless))

    assert verdicts(locked) == [Verdict.NOT_APPLICABLE, Verdict.NOT_APPLICABLE]
    assert verdicts(public) == [Verdict.NOT_TESTED, Verdict.NOT_TESTED]
    assert "must start one for a single user" in played(public)[PAGES].reason


def test_a_refusal_shows_nothing_where_other_turns_are_refused_too():
    profile = reference_profile()
    assert profile.process is not None
    refuses = (sys.executable, str(SERVERS / "hostile.py"), "400", "{port}")
    results = played(replace(profile, process=replace(profile.process, single_user=refuses)))

    assert [result.verdict for result in results.values()] == [Verdict.NOT_TESTED, Verdict.NOT_TESTED]
    assert "is not accepted" in results[PAGES].reason
