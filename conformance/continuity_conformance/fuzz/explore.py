"""Try one property on fixed values and then on values that hypothesis generates, which also shrinks a failing one."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.errors import HypothesisException
from hypothesis.internal.conjecture import providers
from hypothesis.strategies import SearchStrategy

from continuity_conformance.core.budget import Budget
from continuity_conformance.core.cache import user_cache
from continuity_conformance.fuzz.findings import Finding, SmallestFindings, WorthShrinking

T = TypeVar("T")
GENERATING: Final = threading.Lock()
"""Held while hypothesis generates values: it does so for one function at a time."""


# Hypothesis writes its caches to the working folder by default. The user's cache keeps that folder clean, and unlike
# a fixed name in the system's temporary folder nobody else can prepare it.
set_hypothesis_home_dir(user_cache() / "hypothesis")

# Hypothesis also tries constants that it finds in the modules of the working folder. Here they would be sent to the target: a key in somebody's
# source code too. And the same seed would generate other requests in every folder.
setattr(providers, "is_local_module_file", lambda _path: False)  # noqa: B010 - hypothesis has no public setting for it


def hypothesis_settings(budget: Budget, *first: Phase) -> hypothesis.settings:
    """Settings that keep nothing between runs: only the seed decides what is tried."""
    return hypothesis.settings(
        max_examples=budget.examples,
        database=None,
        deadline=None,
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=(*first, Phase.generate, Phase.shrink),
    )


def explore(
    strategy: SearchStrategy[T],
    judge: Callable[[T], Iterable[Finding]],
    budget: Budget,
    fixed: Sequence[T] = (),
    at_once: int = 1,
) -> list[Finding]:
    """Judge the fixed values, so many at once, then generated ones. Return the finding with the smallest request of each kind."""
    findings = SmallestFindings()
    with ThreadPoolExecutor(at_once) as threads:
        for found in threads.map(lambda value: list(judge(value)), fixed):
            findings.add(found)

    @hypothesis.seed(budget.seed)
    @hypothesis.settings(hypothesis_settings(budget))
    @hypothesis.given(strategy)
    def judge_generated(value: T) -> None:
        if findings.add(judge(value)):
            raise WorthShrinking

    # The findings are already stored. Hypothesis reports (flaky, several failures) are meant for tests of functions.
    with GENERATING, contextlib.suppress(WorthShrinking, BaseExceptionGroup, HypothesisException):
        judge_generated()
    return findings.all()
