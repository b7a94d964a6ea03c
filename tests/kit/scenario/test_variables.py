"""The same name is the same value; two names of one kind and one principal are two values."""

from continuity_conformance.scenario.variables import Variables


def names(**example: object) -> Variables:
    return Variables(example, {"HEADER": "X-Session"})


def test_a_name_is_the_same_value_wherever_it_stands():
    scenario = names()

    assert scenario.fill("$id", "session") == scenario.fill({"inside": ["${id}"]})["inside"][0]


def test_two_names_get_two_values():
    scenario = names()

    assert scenario.fill("$one") != scenario.fill("$other")


def test_a_captured_value_has_one_name_for_one_principal():
    scenario = names()

    assert scenario.capture("$hers", "session", "alice", "s1") == ""
    assert scenario.capture("$other", "session", "alice", "s1") == "$hers"
    assert scenario.capture("$his", "session", "bob", "s1") == ""
    assert scenario.capture("$response", "response", "alice", "s1") == ""


def test_what_a_client_goes_on_with_may_have_a_name_already():
    scenario = names()
    sent = scenario.fill("$old", "session")

    scenario.rename("$told", "session", "alice", sent)

    assert scenario.fill("$told", "session") == sent


def test_the_fields_of_an_example_are_names():
    scenario = names(bad="${id}\0x", messages=[{"role": "user"}])

    assert scenario.fill("$bad") == f"{scenario.fill('$id')}\0x"
    assert scenario.fill("$messages") == [{"role": "user"}]


def test_constants_come_from_the_profile():
    assert names().fill({"$HEADER": "present"}) == {"X-Session": "present"}


def test_a_name_without_a_value_is_not_known():
    assert names().known("$new") is None
    assert names().known("literal") == "literal"


def test_alternatives_are_tried_on_a_fork():
    scenario = names()
    trial = scenario.fork()
    trial.capture("$s", "session", "alice", "s1")

    assert scenario.known("$s") is None

    scenario.merge(trial)

    assert scenario.known("$s") == "s1"


def test_a_name_is_new_until_it_has_a_value_or_was_not_revealed():
    variables = Variables({"example": "x"}, {"HEADER": "X-Session"})
    variables.capture("$bound", "session", "alice", "s1")
    variables.could_not_capture("$hidden", "session")

    assert [
        name for name in ("$example", "$bound", "$hidden", "$HEADER", "$new", "new", 5) if variables.is_new(name)
    ] == ["$new"]
