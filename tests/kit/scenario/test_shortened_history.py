"""What is left of a history: its oldest turns dropped, as `compaction: truncate` declares, or its first turns kept and others summarised."""

import pytest

from continuity_conformance.probe.marks import Sighting
from continuity_conformance.probe.view import View
from continuity_conformance.scenario.expect.model import is_end, is_kept_first

COPIES = {"x": ["x/1", "x/2", "x/3"]}


@pytest.mark.parametrize(
    ("pattern", "seen", "holds"),
    [
        ("a b c d", "c d", True),
        ("a b c d", "a b c d", True),
        ("a b c d", "b d", False),
        ("a b c d", "a b d", False),
        ("a b c d", "d c", False),
        ("a maybe-b c maybe-d e", "c e", True),
        ("a maybe-b c maybe-d e", "c d e", True),
        ("a maybe-b c maybe-d e", "b e", False),
        ("a each-x b", "x/3 x/1 b", True),
        ("a each-x b", "x/2 x/3 x/1 b", True),
        ("a each-x b", "x/2 x/2 b", False),
        ("a each-x b", "a x/2 x/3 b", False),
        ("a each-x b", "y x/3 b", False),
    ],
)
def test_only_the_oldest_turns_may_be_missing(pattern: str, seen: str, holds: bool):
    labels = [label.replace("-", " ") for label in pattern.split()]

    assert is_end(labels, seen.split(), COPIES) is holds


@pytest.mark.parametrize(
    ("seen", "summarised", "holds"),
    [
        ("red green", "blue", True),
        ("red blue green", "blue", False),
        ("red green", "red blue", False),
        ("red blue green", "", False),
    ],
)
def test_a_first_turn_may_be_kept_where_others_are_in_the_summary_alone(seen: str, summarised: str, holds: bool):
    """A server that keeps everything, or shows the first turn twice, has not compressed it."""
    sightings = tuple(Sighting("user", "user", mark) for mark in seen.split())

    assert is_kept_first(View(sightings, frozenset(summarised.split())), "red") is holds
