"""A server of an author who knew the prose only: what fails on it is a fault of its author, of the prose, or a false alarm of ours.

Its author also planted defects. `python tools/independent/measure.py` plays the suite on all of them, which takes a quarter of an hour, and writes which requirement catches
which. These tests keep what it found, and play some of it again.
"""

import json

import pytest

from continuity_conformance.core.verdicts import Verdict
from continuity_spec import load_spec
from measure import CAUGHT, FIRST, PLAYED, STRICT, defects, first_failure, played

REQUIREMENTS = {each.id: each for each in load_spec().requirements}


@pytest.fixture
def caught() -> dict[str, str]:
    found: dict[str, str] = json.loads(CAUGHT.read_text(encoding="utf-8"))
    return found


def test_nothing_outside_of_strict_fails_without_a_defect():
    verdicts = played([], PLAYED)

    assert {identity for identity, verdict in verdicts.items() if verdict is Verdict.FAIL} - STRICT == set()
    assert {identity for identity, verdict in verdicts.items() if verdict is Verdict.ERROR} == set()


def test_its_author_planted_43_defects():
    assert len(defects(FIRST)) == 43


def test_each_planted_defect_is_caught(caught):
    assert list(caught) == list(defects(FIRST))
    assert [name for name, identity in caught.items() if not identity] == []


def test_what_catches_a_planted_defect_still_exists_and_decides(caught):
    assert set(caught.values()) - set(REQUIREMENTS) == set()
    assert set(caught.values()) & STRICT == set()


@pytest.mark.parametrize("name", ["gc-forgets-responses", "hangup-stores-partial", "results-by-call-id", "utf8-split"])
def test_a_planted_defect_is_caught_again(name, caught):
    assert first_failure(name, [REQUIREMENTS[caught[name]]]) == caught[name]
