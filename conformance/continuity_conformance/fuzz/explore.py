"""One property, tried first on what is known to be awkward and then on what hypothesis makes up; a failing example is made smaller."""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.errors import HypothesisException
from hypothesis.strategies import SearchStrategy

from continuity_conformance.core.budget import Budget
from continuity_conformance.core.cache import user_cache
from continuity_conformance.fuzz.findings import Finding, Findings, Found

T = TypeVar("T")


# Hypothesis writes its caches to the working folder by default. The user's cache keeps that folder clean, and unlike
# a fixed name in the system's temporary folder nobody else can prepare it.
set_hypothesis_home_dir(user_cache() / "hypothesis")


def settings_of(budget: Budget, *first: Phase) -> hypothesis.settings:
    """Nothing is kept between runs: the seed alone says what is tried."""
    return hypothesis.settings(
        max_examples=budget.examples,
        database=None,
        deadline=None,
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=(*first, Phase.generate, Phase.shrink),
    )


def explored(
    strategy: SearchStrategy[T], play: Callable[[T], Iterable[Finding]], budget: Budget, first: Sequence[T] = ()
) -> list[Finding]:
    """What was found, the smallest request of each kind."""
    findings = Findings()
    for value in first:
        findings.add(play(value))

    @hypothesis.seed(budget.seed)
    @hypothesis.settings(settings_of(budget))
    @hypothesis.given(strategy)
    def one(value: T) -> None:
        if findings.add(play(value)):
            raise Found

    # The findings are kept; what hypothesis says of them (flaky, several) is for tests of functions.
    with contextlib.suppress(Found, BaseExceptionGroup, HypothesisException):
        one()
    return findings.all()
