"""An id that nobody was given has the form of a real one."""

import re
import uuid

import pytest

from continuity_conformance.core.failure import Untested
from continuity_conformance.scenario.unissued import unissued

REAL = {
    "hex": "resp_7101b9854d824c5281a6f7e2b7270c3d",
    "uuid": "msg_0f8fad5b-d9cb-469f-a165-70867728950e",
    "a prefix, a marker and base 62": "caresp_7f3a9b217f3a9b2100Zk3Xq81LmOp0aBcDeFgHiJkLmNoPqRs2",
    "sortable": "resp_01J9ZQ6T7M3W5XK8YB2C4D6E8F",
    "a counter with zeros": "response_00000017",
}


@pytest.mark.parametrize("ident", REAL.values(), ids=REAL)
def test_it_differs_and_keeps_length_prefix_and_classes(ident):
    other = unissued(ident)

    assert other != ident
    assert [_shape(character) for character in other] == [_shape(character) for character in ident]


def _shape(character):
    return next((group for group in ("[0-9]", "[a-f]", "[g-z]", "[A-F]", "[G-Z]") if re.match(group, character)), "")


def test_the_same_id_gives_the_same_one():
    assert unissued(REAL["hex"]) == unissued(REAL["hex"])


def test_a_uuid_stays_one_of_its_version():
    assert uuid.UUID(unissued(REAL["uuid"]).removeprefix("msg_")).version == 4


def test_a_short_counter_is_not_tried():
    with pytest.raises(Untested, match="so short"):
        unissued("r-17")
