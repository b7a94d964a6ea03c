"""Servers that never evict a response: scenarios with evictions do not apply to them, and hide nothing else."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.run.session import Run
from continuity_conformance.target.profile import Process, Profile
from continuity_conformance.target.profile_file import load_profile
from continuity_conformance.target.resolve import resolve
from continuity_spec import load_spec

SERVER = Path(__file__).parents[2] / "servers" / "responses_only.py"
PROFILE = Profile(
    "keeps all",
    chat="none",
    process=Process((sys.executable, str(SERVER), "{port}", "{probe}")),
    options={"tells": "nothing", "derivation": "none", "compaction": "in-place"},
    offers=frozenset({"responses"}),
)


def played(identity: str, profile: Profile) -> Result:
    requirement = next(each for each in load_spec().requirements if each.id == identity)
    with Run(resolve(None, profile), [requirement]) as run:
        return run.result(identity)


@pytest.mark.parametrize(("evicts", "verdict"), [(True, Verdict.NOT_TESTED), (False, Verdict.PASS)])
def test_evictions_count_only_for_a_target_that_evicts(evicts: bool, verdict: Verdict):
    result = played("SLUG-07", replace(PROFILE, evicts=evicts))

    assert result.verdict is verdict
    assert [each.outcome for each in result.evidence if each.scenario == "a response that never existed"] == [
        Verdict.PASS
    ]


def test_what_is_about_evictions_alone_does_not_apply():
    result = played("SLUG-05", replace(PROFILE, evicts=False, options={**PROFILE.options, "tells": "header"}))

    assert (result.verdict, result.reason) == (Verdict.NOT_APPLICABLE, "the target never evicts a response")


def test_a_profile_says_so(tmp_path: Path):
    file = tmp_path / "p.yaml"
    file.write_text("evicts: false\n", encoding="utf-8")

    assert not load_profile(file).evicts
