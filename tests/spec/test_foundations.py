"""Which more basic requirements a scenario rests on."""

import pytest

from continuity_spec import load_spec

SPEC = load_spec()


def rests_on(identity: str, name: str) -> tuple[str, ...]:
    (found,) = (scenario for scenario in SPEC.requirement(identity).scenarios if scenario.name == name)
    return found.rests_on


def test_a_response_that_only_the_header_places_in_a_session_rests_on_echo_11():
    assert "ECHO-11" in rests_on("SLUG-20", "the header keeps the unbranched line")
    assert "ECHO-11" not in rests_on("SLUG-26", "the session of chat turns")


@pytest.mark.parametrize("requirement", SPEC.requirements, ids=lambda each: each.id)
def test_nothing_rests_on_itself(requirement):
    """Else a run would wait for ever: each failure waits for the verdicts that it rests on."""
    found, open_ones = set(), list(requirement.rests_on)
    while open_ones:
        identity = open_ones.pop()
        open_ones += [each for each in SPEC.requirement(identity).rests_on if each not in found]
        found |= set(SPEC.requirement(identity).rests_on) | {identity}

    assert requirement.id not in found
