"""A server of an author who knew the prose only: nothing of ours fails on it, and each defect that its author planted is caught.

`python tools/independent/measure.py` plays the whole suite on every defect and writes caught.json; here each defect is played with what catches it.
"""

import json

import pytest

from continuity_conformance.core.verdicts import Verdict
from continuity_spec import load_spec
from measure import CAUGHT, PLAYED, defects, failures, played

CAUGHT_BY = json.loads(CAUGHT.read_text(encoding="utf-8"))
STRICT = {identity for each in load_spec().classes if not each.decides for identity in each.ids}


def test_nothing_outside_of_strict_fails_without_a_defect():
    verdicts = played([], PLAYED)

    assert {identity for identity, verdict in verdicts.items() if verdict is Verdict.FAIL} - STRICT == set()
    assert {identity for identity, verdict in verdicts.items() if verdict is Verdict.ERROR} == set()


def test_every_defect_is_measured():
    assert list(CAUGHT_BY) == defects()


@pytest.mark.parametrize("name", defects())
def test_a_defect_is_caught(name: str):
    catching = [load_spec().requirement(identity) for identity in CAUGHT_BY[name]]

    assert failures(name, catching) != []
