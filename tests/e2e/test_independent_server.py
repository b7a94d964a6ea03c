"""A server of an author who knew the prose only: what fails on it is a fault of its author, of the prose, or a false alarm of ours.

Its author also planted defects. `python tools/independent/measure.py` plays the suite on all of them, which takes a quarter of an hour, and writes which requirement catches
which. These tests keep what it found, and play some of it again.
"""

import json

import pytest

from continuity_conformance.core.verdicts import Verdict
from continuity_spec import load_spec
from measure import CAUGHT, CAUGHT_SECOND, FIRST, PLAYED, SECOND, STRICT, defects, first_failure, played

REQUIREMENTS = {each.id: each for each in load_spec().requirements}

LISTS = {FIRST: CAUGHT, SECOND: CAUGHT_SECOND}
CATCHES: dict[str, dict[str, str]] = {
    authored: json.loads(file.read_text(encoding="utf-8")) for authored, file in LISTS.items()
}
PLAYED_AGAIN = {
    FIRST: ["gc-forgets-responses", "hangup-stores-partial", "results-by-call-id", "utf8-split"],
    SECOND: ["evict-sweeps-session", "lock-dropped-with-waiters", "sse-splitlines", "waiter-hangup-leaks-lock"],
}


def test_nothing_outside_of_strict_fails_without_a_defect():
    verdicts = played([], PLAYED)

    assert {identity for identity, verdict in verdicts.items() if verdict is Verdict.FAIL} - STRICT == set()
    assert {identity for identity, verdict in verdicts.items() if verdict is Verdict.ERROR} == set()


def test_its_authors_planted_43_and_30_defects():
    assert [len(defects(authored)) for authored in LISTS] == [43, 30]


@pytest.mark.parametrize("authored", LISTS)
def test_each_planted_defect_is_caught(authored: str):
    assert list(CATCHES[authored]) == list(defects(authored))
    assert [name for name, identity in CATCHES[authored].items() if not identity] == []


@pytest.mark.parametrize("authored", LISTS)
def test_what_catches_a_planted_defect_still_exists_and_decides(authored: str):
    found = set(CATCHES[authored].values())

    assert found - set(REQUIREMENTS) == set()
    assert found & STRICT == set()


@pytest.mark.parametrize(
    ("authored", "name"), [(authored, name) for authored, names in PLAYED_AGAIN.items() for name in names]
)
def test_a_planted_defect_is_caught_again(authored: str, name: str):
    by = CATCHES[authored][name]

    assert first_failure(name, [REQUIREMENTS[by]]) == by
