"""Targets that speak otherwise: no session is told, slugs must be made or are not taken, a summary is asked for at the end."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.fuzz.sequence.generator import SequenceScope, generate
from continuity_conformance.probe.server import Probe
from continuity_conformance.run.session import Run
from continuity_conformance.target.profile import DEFAULT_OPTIONS, Profile
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import Scenario, load_spec

NOTHING = {"tells": "nothing"}


def play(profile: Profile, *ids: str) -> dict[str, Result]:
    requirements = [each for each in load_spec().requirements if each.id in ids]
    with Run(resolve(None, profile), requirements) as run:
        return {each.id: run.result(each.id) for each in requirements}


def scenario(identity: str, name: str) -> Scenario:
    return next(each for each in load_spec().requirement(identity).scenarios if each.name == name)


@pytest.fixture(scope="module")
def untold() -> Mapping[str, Result]:
    ids = ("ECHO-01", "ECHO-02", "HISTORY-02", "SLUG-02", "CONCUR-01", "DURABLE-03")
    return play(reference_profile(options=NOTHING), *ids)


def test_a_session_that_is_not_told_is_shown_by_what_the_model_saw(untold: Mapping[str, Result]):
    passed = {name for name, result in untold.items() if result.verdict is Verdict.PASS}

    assert passed == {"HISTORY-02", "SLUG-02", "CONCUR-01", "DURABLE-03"}


def test_what_is_about_the_told_id_is_not_shown_by_it(untold: Mapping[str, Result]):
    assert untold["ECHO-01"].verdict is Verdict.NOT_APPLICABLE
    assert untold["ECHO-02"].verdict is Verdict.NOT_APPLICABLE


def test_nobody_goes_on_in_a_session_that_was_not_told(untold: Mapping[str, Result]):
    outcomes = {each.scenario: each.reason for each in untold["CONCUR-01"].evidence if each.reason}

    assert "does not reveal the session" in outcomes["by the id of a derived turn"]
    assert "by header" not in outcomes


def test_whoever_takes_no_slugs_is_killed_under_load_without_them():
    forgetful = reference_profile(("--defect=slug-lost-on-restart",))

    assert play(replace(forgetful, slugs="none"), "DURABLE-04")["DURABLE-04"].verdict is Verdict.PASS


def test_what_only_the_capabilities_say_counts_from_the_first_turn():
    """The answers of the calibration are judged too, and they come before anything is known."""
    played = play(replace(reference_profile(options=NOTHING), options={}), "ECHO-12", "HISTORY-02")

    assert {name: result.verdict for name, result in played.items()} == dict.fromkeys(played, Verdict.PASS)


@pytest.mark.parametrize(
    ("defect", "requirement"),
    [
        ("history-doubles", "HISTORY-02"),
        ("kill-reruns-turn", "DURABLE-03"),
        ("acknowledged-before-stored", "DURABLE-02"),
    ],
)
def test_defects_are_found_where_nothing_is_told(defect: str, requirement: str):
    results = play(reference_profile((f"--defect={defect}",), NOTHING), requirement)

    assert results[requirement].verdict is Verdict.FAIL


def test_what_goes_on_in_a_told_session_is_known_by_its_names():
    assert scenario("CONCUR-01", "by the id of a derived turn").needs_a_session_id_of_the_target
    assert not scenario("CONCUR-01", "by header").needs_a_session_id_of_the_target
    assert not scenario("DURABLE-01", "a chain of responses").needs_a_session_id_of_the_target


def test_slugs_that_a_target_does_not_take_do_not_apply():
    results = play(replace(reference_profile(), slugs="none"), "SLUG-02")

    assert results["SLUG-02"].verdict is Verdict.NOT_APPLICABLE


def test_a_slug_is_created_where_the_target_takes_no_others():
    results = play(replace(reference_profile(), slugs="made"), "SLUG-02")

    assert results["SLUG-02"].verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("identity", "name", "expected"),
    [
        ("ISOLATE-09", "slugs", True),
        ("SLUG-14", "characters are data", True),
        ("SLUG-14", "no slug at all", False),
        ("SLUG-14", "the object form", False),
        ("SLUG-02", "plain turns", False),
    ],
)
def test_slugs_whose_text_is_chosen_are_told_from_those_that_can_be_made(identity: str, name: str, *, expected: bool):
    """One that is to be refused needs not be made."""
    assert scenario(identity, name).chooses_slug_text is expected


def test_what_chooses_its_slugs_does_not_apply_where_they_are_made():
    outcomes = {
        each.scenario: each.outcome
        for each in play(replace(reference_profile(), slugs="made"), "ISOLATE-09")["ISOLATE-09"].evidence
    }

    assert outcomes == {"session ids": Verdict.PASS, "slugs": Verdict.NOT_APPLICABLE}


def test_no_slug_is_drawn_for_a_target_that_takes_none():
    abilities = frozenset({"responses", "streaming"})
    steps = [
        str(step)
        for seed in range(20)
        for step in generate(SequenceScope(DEFAULT_OPTIONS, abilities, slugs=False), seed, 1).steps
    ]

    assert steps
    assert not [step for step in steps if "conversation" in step]


def test_a_summary_is_asked_for_in_the_first_message_or_in_the_last():
    probe = Probe("a compact checkpoint")
    ask, talk = {"role": "user", "content": "Create a compact checkpoint."}, {"role": "user", "content": "red"}

    assert [probe.record(messages).summary for messages in ([ask, talk], [talk, ask], [talk, ask, talk])] == [
        True,
        True,
        False,
    ]
