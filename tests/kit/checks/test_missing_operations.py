"""A target without GET or DELETE of stored responses: only requirements about them are affected. One key is enough for the checks about keys."""

import sys
from pathlib import Path

import pytest

from continuity_conformance.core.budget import Budget
from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.run.session import Run
from continuity_conformance.target.profile import Process, Profile
from continuity_conformance.target.resolve import resolve
from continuity_spec import load_spec

SERVER = Path(__file__).parents[2] / "servers" / "moody.py"
TOKEN = "a-token-0123456789"


def _played(mood: str, ids: tuple[str, ...], key: str = "") -> dict[str, Result]:
    options = (f"--controls={TOKEN}", *([f"--key=alice={key}"] if key else []))
    profile = Profile(
        mood,
        process=Process((sys.executable, str(SERVER), mood, "{port}", "{probe}", *options)),
        principals={"alice": key} if key else {},
        single_user=not key,
        token=TOKEN,
    )
    requirements = [load_spec().requirement(each) for each in ids]
    with Run(resolve(None, profile), requirements, Budget(examples=2)) as run:
        return {each: run.result(each) for each in ids}


@pytest.mark.parametrize("mood", ["without GET", "without DELETE"])
def test_sequences_and_evictions_are_played_to_their_end(mood):
    results = _played(mood, ("CONTRACT-20", "CONTRACT-21", "SLUG-03", "SLUG-15"))

    assert {each: result.verdict for each, result in results.items()} == {
        "CONTRACT-20": Verdict.PASS,
        "CONTRACT-21": Verdict.PASS,
        "SLUG-03": Verdict.PASS,
        "SLUG-15": Verdict.NOT_APPLICABLE,
    }


def test_one_key_is_enough_for_the_checks_about_keys():
    results = _played("nothing", ("CONTRACT-08",), key="key-of-alice-0123456789")

    assert results["CONTRACT-08"].verdict is Verdict.PASS
