"""Compression by filling the context, on the bundled server without its control API."""

from dataclasses import replace

import pytest

from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.plugin import Filling, Profile
from continuity_conformance.run import player
from continuity_conformance.run.session import Run
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import load_spec

ENOUGH = Filling(turns=4, characters=3200)


def profile_of(*arguments: str, filling: Filling = ENOUGH, compaction: str = "rotate") -> Profile:
    profile = reference_profile(("--context=3000", *arguments), {"compaction": compaction})
    assert profile.process is not None
    start = tuple(word for word in profile.process.start if not word.startswith("--controls"))
    return replace(profile, process=replace(profile.process, start=start), token="", filling=filling)


def results(profile: Profile, *ids: str) -> dict[str, Result]:
    requirements = [each for each in load_spec().requirements if each.id in ids]
    with Run(resolve(None, profile), requirements) as run:
        return {each.id: run.result(each.id) for each in requirements}


def test_every_way_to_name_a_session_is_filled():
    """By header, derived, by slug, by a chain of responses; plain and streamed; several times; failing; with the real client."""
    ids = ("COMPRESS-01", "COMPRESS-02", "COMPRESS-04", "COMPRESS-08", "COMPRESS-12", "COMPRESS-13", "COMPRESS-16")

    verdicts = {id_: result.verdict for id_, result in results(profile_of(), *ids).items()}

    assert verdicts == dict.fromkeys(ids, Verdict.PASS)


def test_what_is_compressed_in_place_is_filled_too():
    result = results(profile_of(compaction="in-place"), "COMPRESS-14")["COMPRESS-14"]

    assert result.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("defect", "id_"),
    [
        ("rotation-answers-old-id", "COMPRESS-01"),
        ("stale-parent-reads-old-history", "COMPRESS-02"),
        ("failed-compression-loses-history", "COMPRESS-12"),
        ("derived-child-every-turn", "COMPRESS-13"),
    ],
)
def test_a_defect_is_found_by_filling_too(defect: str, id_: str):
    assert results(profile_of(f"--defect={defect}"), id_)[id_].verdict is Verdict.FAIL


def test_too_little_is_not_tested():
    result = results(profile_of(filling=Filling(2, 500)), "COMPRESS-02")["COMPRESS-02"]

    assert result.verdict is Verdict.NOT_TESTED
    assert "the target did not compress" in result.reason


MORE = Filling(turns=9, characters=3200)


def test_a_filler_that_is_too_much_is_left_out_of_another_try():
    result = results(profile_of(filling=MORE), "COMPRESS-01")["COMPRESS-01"]
    said = [str(each) for evidence in result.evidence for each in evidence.exchanges]

    assert result.verdict is Verdict.PASS
    assert any("filler 3 before" in each for each in said)
    assert not any("filler 4 before" in each for each in said)


def test_a_defect_is_found_in_another_try_too():
    result = results(profile_of("--defect=stale-parent-reads-old-history", filling=MORE), "COMPRESS-02")["COMPRESS-02"]

    assert result.verdict is Verdict.FAIL


def test_what_is_too_much_in_every_try_is_not_tested(monkeypatch: pytest.MonkeyPatch):
    """A filler that compresses already says nothing about the turn that was to be tested."""
    monkeypatch.setattr(player, "_TRIES", 1)
    result = results(profile_of(filling=MORE), "COMPRESS-02")["COMPRESS-02"]

    assert result.verdict is Verdict.NOT_TESTED
    assert "compressed during filler" in result.reason


def test_a_failure_counts_what_only_makes_a_turn_long():
    """A transcript is read by people, and pasted into issues."""
    result = results(profile_of("--defect=rotation-answers-old-id"), "COMPRESS-01")["COMPRESS-01"]

    assert "filler 3 before blue And so it goes on. … (" in result.failure
    assert result.failure.count("And so it goes on.") < 40


def test_a_failure_tells_that_the_context_was_filled_and_that_a_summary_was_asked_for():
    result = results(profile_of("--defect=rotation-answers-old-id"), "COMPRESS-01")["COMPRESS-01"]

    assert "◆ compress: true   2\n" in result.failure
    assert "the context is filled with turns of 3200 characters, the next one is too much\n" in result.failure
    assert "the target then asked the model for a summary\n" in result.failure
