"""Real cache pressure: what it takes, and what it does not say where there was none."""

from collections.abc import Mapping
from dataclasses import replace

from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.plugin import ControlContext, Profile
from continuity_conformance.run.session import Run
from continuity_conformance.target.control_context import ApiControl
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import load_spec


def played(profile: Profile) -> Result:
    with Run(resolve(None, profile), [load_spec().requirement("SLUG-19")]) as run:
        return run.result("SLUG-19")


def test_without_knowing_how_many_are_kept_there_is_no_pressure():
    profile = reference_profile()

    result = played(replace(profile, limits=replace(profile.limits, responses=0)))

    assert result.verdict is Verdict.NOT_TESTED
    assert result.reason == "no control to evict-by-pressure"


def test_a_response_that_outlives_the_pressure_is_a_failure():
    """That the eviction cannot be verified does not hide it."""
    result = played(reference_profile(("--defect=responses-never-evicted",)))

    assert result.verdict is Verdict.FAIL
    assert "step 5" in result.failure


def test_a_cache_that_could_not_be_filled_says_nothing():
    profile = reference_profile(("--defect=responses-never-evicted",))

    async def fill(context: ControlContext, _: Mapping[str, object]) -> None:
        await ApiControl("fault", profile.token)(context, {"what": "write", "on": True})

    result = played(replace(profile, controls={"fill": fill}))

    assert result.verdict is Verdict.NOT_TESTED
    assert "the cache could not be filled: a response was answered with 503" in result.reason
