"""Servers of authors who knew the prose only: what fails on them is a fault of their authors, of the prose, or a false alarm of ours.

Their authors also planted defects. `python tools/independent/measure.py` plays the suite on all of them, which takes minutes, and writes which requirement catches
which. These tests keep what it found, and play some of it again.
"""

import json

import pytest

from continuity_conformance.core.verdicts import Verdict
from continuity_spec import load_spec
from measure import PLAYED, SETS, STRICT, first_failure, played

REQUIREMENTS = {each.id: each for each in load_spec().requirements}
CATCHES: dict[str, dict[str, str]] = {
    name: json.loads(planted.caught_file.read_text(encoding="utf-8")) for name, planted in SETS.items()
}
PLAYED_AGAIN = {
    "first": ["gc-forgets-responses", "hangup-stores-partial", "results-by-call-id", "utf8-split"],
    "second": ["evict-sweeps-session", "lock-dropped-with-waiters", "sse-splitlines", "waiter-hangup-leaks-lock"],
    "third": ["idem-memory", "lock-pop", "covers-count", "delete-unlocked"],
    "fourth": ["results-trimmed", "path-decoded-twice", "evict-cuts-history", "hang-up-keeps-session"],
}


@pytest.mark.parametrize("name", ["first", "third", "fourth"])
def test_nothing_outside_of_strict_fails_without_a_defect(name: str):
    verdicts = played(SETS[name], PLAYED)

    failed = {identity for identity, verdict in verdicts.items() if verdict is Verdict.FAIL}
    assert failed - STRICT == SETS[name].own_faults
    assert {identity for identity, verdict in verdicts.items() if verdict is Verdict.ERROR} == set()


def test_four_authors_planted_222_defects():
    assert [len(planted.defects) for planted in SETS.values()] == [43, 30, 54, 95]


@pytest.mark.parametrize("name", SETS)
def test_each_planted_defect_is_caught_or_the_readme_says_why_not(name: str):
    assert list(CATCHES[name]) == list(SETS[name].defects)
    assert {defect for defect, identity in CATCHES[name].items() if not identity} == SETS[name].not_caught


@pytest.mark.parametrize("name", SETS)
def test_what_catches_a_planted_defect_still_exists_and_decides(name: str):
    found = set(filter(None, CATCHES[name].values()))

    assert found - set(REQUIREMENTS) == set()
    assert found & STRICT == set()


@pytest.mark.parametrize(
    ("name", "defect"), [(name, defect) for name, defects in PLAYED_AGAIN.items() for defect in defects]
)
def test_a_planted_defect_is_caught_again(name: str, defect: str):
    by = CATCHES[name][defect]

    assert first_failure(SETS[name], defect, [REQUIREMENTS[by]]) == by
