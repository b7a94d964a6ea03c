"""Without a defect the reference server keeps everything, under every value of every option."""

import pytest
from matrix import play

from continuity_conformance.fuzz.budget import Budget
from continuity_conformance.verdicts import Verdict
from continuity_spec import load

LITTLE = Budget(examples=2)
"""Random testing with the whole budget is what `make check` does."""


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"derivation": "content-v2"},
        {"derivation": "none"},
        {"compaction": "in-place"},
        {"echo": "alias"},
        {"degraded": "refuse"},
        {"turns": "reject"},
        {"environment": "per-session"},
        {"environment": "none"},
    ],
    ids=lambda options: " ".join(options.values()) or "default",
)
def test_without_a_defect_nothing_fails_and_nothing_is_untested(options):
    """Under every value of every option. What is left is for a reviewer."""
    verdicts = {result.id: result.verdict for result in play(options=options, budget=LITTLE)}
    decided = {identity for identity, verdict in verdicts.items() if verdict in {Verdict.PASS, Verdict.NOT_APPLICABLE}}

    assert set(verdicts) - decided == {entry.id for entry in load().requirements if entry.manual is not None}


def test_a_target_that_tells_nothing_fails_just_that():
    """ECHO-01 asks for the header. Elsewhere the session is unobserved, not failed."""
    failed = {
        result.id for result in play(options={"tells": "nothing"}, budget=LITTLE) if result.verdict is Verdict.FAIL
    }

    assert failed == {"ECHO-01"}
