"""After a quarter of a run, the time left is right within a factor of two."""

import json
import random

import pytest

from continuity_conformance.core.verdicts import Verdict, undecided
from continuity_conformance.terminal.time_left import FILE, TimeLeft, weights
from continuity_spec import load_spec

SPEC = load_spec()
DECIDED_AT = json.loads(FILE.read_text(encoding="utf-8"))
PLAYED = {each.id: each for each in SPEC.requirements if each.how in {"scenario", "check"}}
TOTAL = max(DECIDED_AT.values())


def told(decided_at: dict[str, float], share: float) -> float:
    """The estimate at a moment of a run, in which requirements are decided at these times, in relation to the truth."""
    total = max(decided_at.values())
    now = total * share
    decided = [undecided(PLAYED[id_], Verdict.PASS, "") for id_, at in decided_at.items() if at <= now]
    left = TimeLeft(SPEC.requirements).seconds(decided, now)
    return (left or 0) / (total - now)


@pytest.mark.parametrize("share", [0.25, 0.4, 0.5, 0.6, 0.75, 0.9])
@pytest.mark.parametrize("slower", [1, 20], ids=["as measured", "20 times slower"])
def test_the_measured_run_is_foreseen(share, slower):
    assert 0.5 < told({id_: at * slower for id_, at in DECIDED_AT.items() if id_ in PLAYED}, share) < 2


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_a_run_in_another_order_is_foreseen_too(share, seed):
    chance = random.Random(seed)
    shaken = {
        id_: min(TOTAL, max(0.3, at * chance.uniform(0.7, 1.3))) for id_, at in DECIDED_AT.items() if id_ in PLAYED
    }

    assert 0.5 < told(shaken, share) < 2


def test_what_does_not_apply_says_nothing_about_speed():
    never_played = [undecided(each, Verdict.NOT_APPLICABLE, "") for each in list(PLAYED.values())[:80]]

    assert TimeLeft(SPEC.requirements).seconds(never_played, 5.0) is None


def test_all_weights_together_are_the_measured_run():
    assert sum(weights(DECIDED_AT).values()) == pytest.approx(TOTAL, rel=0.15)


def test_nearly_every_requirement_was_measured():
    assert len(DECIDED_AT.keys() & PLAYED.keys()) > 0.9 * len(PLAYED)
