"""The ids that ISOLATE-13 forges: almost the real one, and of the same alphabet."""

import re

import pytest

from continuity_conformance.checks.isolate import changed_ids

IDS = ["resp_0123456789abcdef0123456789abcdef", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "resp_bGl0ZWxsbTpjdXN0b20", "7"]


@pytest.mark.parametrize("ident", IDS)
def test_a_changed_id_is_never_the_id_itself(ident):
    changed = changed_ids(ident)

    assert ident not in changed
    assert len(set(changed)) == len(changed)


def test_every_part_of_an_id_is_changed():
    real = IDS[0]
    places = {
        place for changed in changed_ids(real) for place in range(len(real)) if changed[place:][:1] != real[place]
    }

    assert {0, len(real) - 1} <= places
    assert len(places) > 8


def test_hex_digits_stay_hex_digits():
    same_length = [changed for changed in changed_ids("a" * 8 + "9f" * 8) if len(changed) == 24]

    assert all(re.fullmatch("[0-9a-f]{24}", changed) for changed in same_length)
