"""The oracle: what the contract says of operations in any order, as steps of the vocabulary."""

from continuity_conformance.fuzz.sequence.oracle import NOT_FOUND, Oracle, TurnOptions
from continuity_conformance.target.profile import DEFAULT_OPTIONS

PLAIN = TurnOptions()
BOB = TurnOptions("bob")
COMPRESSING = TurnOptions(compress=True)


def oracle(**options: str) -> Oracle:
    return Oracle({**DEFAULT_OPTIONS, **options})


def test_a_session_sees_its_turns_and_no_others():
    model = oracle()
    model.turn_by_id(None, PLAIN)
    model.turn_by_id(None, PLAIN)

    assert model.turn_by_id("$s1", PLAIN) == {
        "chat": {"session": "$s1", "say": "green"},
        "expect": {"session": "$s1", "sees": ["red", "green"]},
    }


def test_the_newest_response_continues_and_an_older_one_branches():
    model = oracle()
    model.turn_in_new_session(PLAIN)
    first = model.responses[0]
    model.turn_after_response(first, PLAIN)

    assert model.turn_after_response(first, PLAIN)["expect"] == {
        "session": "$s2",
        "response": "$r3",
        "sees": ["red", "green"],
    }
    assert model.turn_after_response(model.responses[1], PLAIN)["expect"]["sees"] == ["red", "blue", "white"]


def test_after_a_rotation_every_id_leads_to_the_tip_and_the_first_turn_is_summarised():
    model = oracle()
    model.turn_by_id(None, PLAIN)
    model.turn_by_id("$s1", COMPRESSING)

    assert model.turn_by_id("$s1", PLAIN)["expect"] == {
        "session": "$s2",
        "recalls": ["summarised red", "verbatim blue", "green"],
        "summary": True,
    }


def test_a_streamed_rotation_announces_the_new_id():
    model = oracle()
    model.turn_by_id(None, PLAIN)

    assert model.turn_by_id("$s1", TurnOptions(stream=True, compress=True))["expect"] == {"announces": "$s2"}


def test_where_ids_are_aliases_or_rotation_is_in_place_the_id_stays():
    for options in ({"echo": "alias"}, {"compaction": "in-place"}):
        model = oracle(**options)
        model.turn_by_id(None, PLAIN)

        assert model.turn_by_id("$s1", COMPRESSING)["expect"] == {"session": "$s1"}


def test_a_lost_response_is_unknown_and_its_slug_goes_on():
    model = oracle()
    model.turn_by_slug(None, PLAIN)
    model.evict(model.responses[0])

    assert model.turn_after_response(model.responses[0], PLAIN)["expect"] == NOT_FOUND
    assert model.turn_by_slug("$slug1", PLAIN)["expect"]["sees"] == ["red", "green"]


def test_a_turn_that_is_not_stored_leaves_nothing():
    model = oracle()
    model.turn_by_slug(None, PLAIN)
    model.turn_by_slug("$slug1", TurnOptions(store=False))

    assert model.turn_by_slug("$slug1", PLAIN)["expect"]["sees"] == ["red", "green"]
    assert model.get_response(model.responses[1], "alice")["expect"] == NOT_FOUND


def test_a_deleted_session_is_as_unknown_and_its_branch_stays():
    model = oracle()
    model.turn_by_slug(None, PLAIN)
    model.turn_by_slug("$slug1", PLAIN)
    model.turn_after_response(model.responses[0], PLAIN)
    model.delete_session("$s1", "alice")

    assert model.turn_by_id("$s1", PLAIN)["expect"] == {"session": "$s1", "sees": ["white"]}
    assert model.turn_by_slug("$slug1", PLAIN)["expect"]["sees"] == ["black"]
    assert model.turn_by_id("$s2", PLAIN)["expect"]["sees"] == ["red", "green", "grey"]


def test_a_foreign_id_starts_an_empty_session_and_a_foreign_response_is_unknown():
    model = oracle()
    model.turn_by_slug(None, PLAIN)

    assert model.turn_by_id("$s1", BOB)["expect"] == {"session": "$s1", "sees": ["blue"]}
    assert model.turn_by_slug("$slug1", BOB)["expect"]["sees"] == ["green"]
    assert model.turn_after_response(model.responses[0], BOB)["expect"] == NOT_FOUND


def test_an_opening_makes_the_id_whoever_says_it():
    model = oracle()
    model.turn_without_id((), None, PLAIN)

    assert model.turn_without_id((), "red", BOB)["expect"] == {"session": "$s1", "sees": ["red"]}
    assert model.turn_without_id(("red",), "red", PLAIN)["expect"] == {"session": "$s1", "sees": ["red", "blue"]}


def test_a_repeated_request_gets_the_same_answer_and_is_stored_once():
    model = oracle()
    first = model.turn_by_id(None, TurnOptions(key="$k1"))
    again = model.repeat_turn(model.keyed_turns[0])

    assert again["chat"] == first["chat"]
    assert again["expect"] == {"session": "$s1", "answer": "$a1"}
    assert model.turn_by_id("$s1", PLAIN)["expect"]["sees"] == ["red", "blue"]


def test_a_branch_without_an_id_of_its_own_is_named_by_its_responses_only():
    model = Oracle(DEFAULT_OPTIONS, own_branches=False)
    model.turn_in_new_session(PLAIN)
    first = model.responses[0]
    model.turn_after_response(first, PLAIN)

    assert model.turn_after_response(first, PLAIN)["expect"] == {"response": "$r3", "sees": ["red", "green"]}
    assert model.turn_after_response(model.responses[2], PLAIN)["expect"]["sees"] == ["red", "green", "white"]
    assert model.turn_by_id("$s1", PLAIN)["expect"] == {"session": "$s1", "sees": ["red", "blue", "black"]}
