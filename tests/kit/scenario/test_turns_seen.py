"""In which ways the turns that the model saw differ from the expected ones."""

import pytest

from continuity_conformance.scenario.expect.model import differences


@pytest.mark.parametrize(
    ("seen", "kinds"),
    [
        (["red", "red", "blue"], ("doubled",)),
        (["red (no answer)", "red", "blue"], ("doubled",)),
        (["red", "answer to red (no question)", "blue"], ("doubled",)),
        (["blue"], ("missing",)),
        (["red", "green", "blue"], ("foreign",)),
        (["red (no answer)", "blue"], ("partial",)),
        (["blue", "red"], ("reordered",)),
        (["red (no answer)", "red", "green", "blue"], ("doubled", "foreign")),
    ],
)
def test_a_failure_has_the_kinds_of_its_differences(seen: list[str], kinds: tuple[str, ...]):
    assert differences(["red", "blue"], seen) == kinds


def test_a_question_and_its_answer_that_stand_apart_are_not_a_doubled_turn():
    seen = [
        "red (no answer)",
        "blue (no answer)",
        "answer to red (no question)",
        "answer to blue (no question)",
        "green",
    ]

    assert differences(["red", "maybe blue", "green"], seen) == ("partial",)


def test_half_a_turn_beside_a_doubled_one_is_a_failure_of_its_own():
    seen = ["red (no answer)", "red", "blue (no answer)", "green"]

    assert differences(["red", "maybe blue", "green"], seen) == ("doubled", "partial")


def test_copies_of_a_turn_that_the_model_did_not_see_are_missing():
    copies = {"red": ["red/1", "red/2"]}

    assert differences(["each red", "blue"], ["red/2", "blue"], copies) == ("missing",)
    assert differences(["each red", "blue"], ["blue", "red/1", "red/2"], copies) == ("reordered",)
