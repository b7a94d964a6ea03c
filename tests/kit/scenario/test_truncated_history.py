"""What is left of a history whose oldest turns a target drops, as `compaction: truncate` declares."""

import pytest

from continuity_conformance.scenario.expect.model import is_end

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
