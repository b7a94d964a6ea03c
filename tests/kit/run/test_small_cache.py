"""A server whose response cache is small: scenarios side by side do not crowd out each other's responses."""

from dataclasses import replace

import pytest

from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.run.session import Run
from continuity_conformance.target.profile import Profile
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import Requirement, load_spec

SIZE = 20


def _small() -> Profile:
    """Every server has the small cache, also those that scenarios share."""
    profile = reference_profile((f"--max-responses={SIZE}",))
    assert profile.process is not None
    process = replace(profile.process, alone=())
    return replace(profile, process=process, limits=replace(profile.limits, parallel=16, responses=SIZE))


def _about_responses() -> list[Requirement]:
    return [
        each
        for each in load_spec().requirements
        if each.check is None
        and any(Profile("any").stored_responses(step) for scenario in each.scenarios for step in scenario.steps)
    ]


def test_nothing_fails_on_a_small_cache():
    requirements = _about_responses()
    with Run(resolve(None, _small()), requirements) as run:
        results = [run.result(each.id) for each in requirements]

    assert [f"{each.id}: {each.failure}" for each in results if each.verdict is Verdict.FAIL] == []
    notes = [note["how"] for each in results for one in each.evidence for note in one.interventions or ()]
    assert [note for note in notes if "the first time" in str(note)] == []


@pytest.mark.parametrize(
    ("alone", "responses", "shared"), [((), 20, 20), (("--small",), 20, 1000), (("--small",), 0, 0), ((), 0, 0)]
)
def test_arguments_for_servers_that_play_alone_leave_the_others_a_large_cache(alone, responses, shared):
    profile = reference_profile()
    assert profile.process is not None
    given = replace(
        profile,
        process=replace(profile.process, alone=alone),
        limits=replace(profile.limits, responses=responses),
    )

    assert given.shared_responses == shared
