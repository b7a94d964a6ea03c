"""A server of an author who knew the prose only: what fails on it is a fault of its author, of the prose, or a false alarm of ours.

Its author also planted defects: `python tools/independent/measure.py` shows which of them the suite catches.
"""

from continuity_conformance.core.verdicts import Verdict
from continuity_spec import load_spec
from measure import PLAYED, defects, played

STRICT = {identity for each in load_spec().classes if not each.decides for identity in each.ids}


def test_nothing_outside_of_strict_fails_without_a_defect():
    verdicts = played([], PLAYED)

    assert {identity for identity, verdict in verdicts.items() if verdict is Verdict.FAIL} - STRICT == set()
    assert {identity for identity, verdict in verdicts.items() if verdict is Verdict.ERROR} == set()


def test_its_author_planted_more_than_20_defects():
    assert len(defects()) == len(set(defects())) > 20
