"""An answer with the pieces of a broken try: whether the model knew of them when it gave the answer."""

import pytest

from continuity_conformance.core.failure import Unmet
from continuity_conformance.probe.marks import marks_in
from continuity_conformance.probe.view import View
from continuity_conformance.scenario.observe import require_one_try

RED, BLUE = "aaaa0000", "bbbb0000"
ASKED = {"role": "user", "content": f"[u:{BLUE}] blue"}


def looked_at(text: str, *messages: dict[str, str]) -> None:
    sightings = tuple(marks_in([ASKED, *messages]))
    require_one_try(View(sightings, frozenset()), text, BLUE, 2)


def test_pieces_of_a_try_that_the_model_did_not_see_are_found():
    with pytest.raises(Unmet):
        looked_at(f"Noted. [a:{BLUE}#1]Noted. [a:{BLUE}#2]")


def test_an_answer_that_goes_on_after_what_the_model_saw_is_one_answer():
    looked_at(f"Noted. [a:{BLUE}#1]Noted. [a:{BLUE}#2]", {"role": "assistant", "content": f"Noted. [a:{BLUE}#1]"})


@pytest.mark.parametrize("text", [f"Noted. [a:{BLUE}#2]", f"You said [a:{RED}#1]. Noted. [a:{BLUE}#2]"])
def test_an_answer_and_a_quotation_are_no_pieces(text: str):
    looked_at(text)
