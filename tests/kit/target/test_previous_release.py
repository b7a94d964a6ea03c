"""Upgrades: a scenario talks to the previous release, and then to this one on the same data."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.plugin import Process, Profile
from continuity_conformance.run.session import Run
from continuity_conformance.target.profile_file import load_profile
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import load_spec

OLD_RELEASE = (sys.executable, str(Path(__file__).parents[2] / "servers" / "old_release.py"))
SLUG = "a slug of the previous release"


def upgraded(*arguments: str) -> Profile:
    """The bundled server after an earlier release, which it knows only by the data."""
    previous = Process((*OLD_RELEASE, "{port}", "{folder}/continuity.db"))
    return replace(reference_profile(arguments), previous=previous, legacy="")


def result(profile: Profile, id_: str) -> Result:
    with Run(resolve(None, profile), [load_spec().requirement(id_)]) as run:
        return run.result(id_)


def outcomes(profile: Profile, id_: str) -> dict[str, tuple[Verdict, str]]:
    return {each.scenario: (each.outcome, each.reason) for each in result(profile, id_).evidence}


def test_what_the_previous_release_stored_goes_on():
    played = outcomes(upgraded(), "MIGRATE-01")

    assert played[SLUG][0] is Verdict.PASS
    assert played["a chain of responses of the previous release"][0] is Verdict.PASS
    assert played["every row"][0] is Verdict.NOT_APPLICABLE


def test_what_the_previous_release_cannot_do_is_not_tested():
    verdict, reason = outcomes(upgraded(), "MIGRATE-01")["a session of the previous release"]

    assert verdict is Verdict.NOT_TESTED
    assert "the previous release: expected 2xx, actual 404" in reason


def test_an_upgrade_that_loses_rows_fails():
    assert outcomes(upgraded("--defect=migration-drops-tables"), "MIGRATE-01")[SLUG][0] is Verdict.FAIL


@pytest.mark.parametrize("id_", ["MIGRATE-01", "MIGRATE-04", "MIGRATE-06", "MIGRATE-08"])
def test_a_target_without_an_earlier_release_has_nothing_to_migrate(id_: str):
    played = result(replace(reference_profile(), previous=None, legacy=""), id_)

    assert played.verdict is Verdict.NOT_APPLICABLE
    assert "declares no earlier release" in played.reason


def test_a_profile_names_the_previous_release(tmp_path: Path):
    path = tmp_path / "profile.yaml"
    path.write_text("process: {start: [new, '{port}']}\nprevious: {start: [old, '{port}'], ready: /up}\n")

    assert load_profile(path).previous == Process(("old", "{port}"), ready="/up")
