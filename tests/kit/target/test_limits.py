"""A 429 under load, from a target that declares a limit."""

from continuity_conformance.http.messages import Answer
from continuity_conformance.target.profile import Limits

LIMITED = Answer(status=429, headers=(("Retry-After", "1"),))


def test_a_declared_limit_allows_a_429_that_says_when_to_try_again():
    assert Limits(at_once=4).allow(LIMITED)


def test_without_a_declared_limit_a_429_is_a_failure():
    assert not Limits().allow(LIMITED)


def test_a_429_that_does_not_say_when_to_try_again_is_a_failure():
    assert not Limits(at_once=4).allow(Answer(status=429))
