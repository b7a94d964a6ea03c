"""The real servers as they are: what the suite finds in each, by the requirement that one would expect."""

import pytest
from target_runs import HERMES, TARGETS, play

from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.target.resolve import resolve

PASS, FAIL, NOT_APPLICABLE = Verdict.PASS, Verdict.FAIL, Verdict.NOT_APPLICABLE
FOUND = {
    HERMES: {
        "SLUG-02": (FAIL, "sees"),  # the doubled history of responses
        "SLUG-03": (FAIL, "session"),  # the slug lost by an eviction
        "ECHO-07": (FAIL, "headers"),  # the header that browsers may neither send nor read
        "ISOLATE-10": (FAIL, "session"),  # the replay of one session's answer in another
        "SLUG-11": (FAIL, "session"),  # the slug lost by an eviction, of a session that was compressed
        "SLUG-12": (FAIL, "session"),  # parallel first turns of one slug
        "HISTORY-02": (PASS, ""),
    },
    f"hermes-rotating=={HERMES.partition('==')[2]}": {
        "COMPRESS-02": (FAIL, "session"),  # the stale parent
        "COMPRESS-06": (PASS, ""),
        "COMPRESS-07": (FAIL, "announces"),  # the streamed rotation that nobody is told
    },
    "azure-agentserver==2.3.0": {
        "SLUG-02": (PASS, ""),
        "SLUG-25": (FAIL, "actual 200"),  # an unknown response of the right form is an empty history
        "SLUG-08": (FAIL, "actual 200"),  # a slug and a response id at once are taken together
        "SLUG-13": (
            FAIL,
            "expected red, blue, green, actual blue, green",
        ),  # by a response of a slug the rest is forgotten
        "HISTORY-08": (FAIL, "red, blue (no answer), green"),
        "DURABLE-02": (PASS, ""),
        "CONCUR-01": (FAIL, "serial: expected an order"),
        "HISTORY-01": (NOT_APPLICABLE, "does not offer chat"),
    },
    "letta==0.32.18": {
        "HISTORY-02": (PASS, ""),
        "HISTORY-09": (FAIL, "system"),  # the client's system message never reaches the model
        "DURABLE-01": (FAIL, "expected red, blue, green, actual green"),  # a restart forgets which session a key names
        "CONCUR-01": (PASS, ""),
        "ISOLATE-01": (PASS, ""),
        "SLUG-02": (NOT_APPLICABLE, "takes no slugs"),
    },
    "nanobot==0.3.5": {
        "ECHO-01": (FAIL, "absent"),
        "HISTORY-02": (PASS, ""),
        "HISTORY-08": (FAIL, "red, blue (no answer), green"),
        "COMPRESS-14": (PASS, ""),  # by filling
        "DERIVE-15": (FAIL, "expected red, actual"),
        "ISOLATE-01": (PASS, ""),
        "ISOLATE-04": (FAIL, "expected 400, actual 500"),
        "SLUG-02": (NOT_APPLICABLE, "does not offer responses"),
    },
    "ogx==1.5.0": {
        "SLUG-02": (PASS, ""),
        "SLUG-10": (PASS, ""),  # with an eviction
        "HISTORY-02": (PASS, ""),
        "STREAM-02": (PASS, ""),
        "HISTORY-01": (NOT_APPLICABLE, "does not offer chat"),
        "CONCUR-01": (FAIL, "serial: expected an order"),
    },
    "openclaw==2026.9.6": {
        "ECHO-01": (FAIL, "absent"),
        "HISTORY-02": (PASS, ""),
        "HISTORY-01": (FAIL, "forged"),
        "SLUG-07": (FAIL, "actual status 200"),
        "SLUG-02": (NOT_APPLICABLE, "takes no slugs"),
        "ISOLATE-09": (FAIL, "expected blue, actual red, blue"),
        "DERIVE-15": (PASS, ""),
    },
    "openhands==1.58.0": {
        "ECHO-02": (PASS, ""),
        "HISTORY-02": (PASS, ""),
        "HISTORY-09": (FAIL, "system"),  # a system prompt that comes later is dropped
        "HISTORY-08": (FAIL, "status"),  # the turn after a failure of the model fails too
        "CONCUR-01": (FAIL, "serial"),  # turns at once become one turn
        "DELETE-01": (PASS, ""),
        "ENV-01": (PASS, ""),  # with its terminal
        "SLUG-02": (NOT_APPLICABLE, "does not offer responses"),
    },
    "mastra==1.71.0": {
        "SLUG-02": (PASS, ""),
        "SLUG-10": (PASS, ""),  # with a window of ten messages, which the profile declares
        "SLUG-13": (FAIL, "expected red, other blue, actual red, blue, other blue"),  # no branches
        "SLUG-18": (FAIL, "red, blue (no answer), green"),  # DELETE takes the answer out of the history
        "SLUG-23": (FAIL, "actual 404"),  # `store` is off by default
        "STREAM-06": (FAIL, "actual 200"),  # a model that fails is told as a success
        "ECHO-02": (NOT_APPLICABLE, "tells is nothing"),
    },
}
"""What was measured by hand, the requirement that says so, and words of the reason that it gives in any of its scenarios."""


@pytest.mark.parametrize("target", FOUND)
def test_the_suite_finds_what_was_measured_by_hand(target: str):
    results = play(target, list(FOUND[target]))

    assert {name: result.verdict for name, result in results.items()} == {
        name: verdict for name, (verdict, _) in FOUND[target].items()
    }
    for name, (verdict, words) in FOUND[target].items():
        found = [each for each in results[name].evidence if each.outcome is verdict]
        said = [results[name].reason, *(f"{each.expectation} {each.reason}" for each in found)]
        assert any(words in each for each in said), (name, said)
        assert verdict is not FAIL or any("POST" in each.failure for each in found)


@pytest.mark.parametrize("target", TARGETS)
def test_it_can_be_asked_for_by_its_version(target: str):
    assert resolve(target).profile.name == target.replace("==", " ")
