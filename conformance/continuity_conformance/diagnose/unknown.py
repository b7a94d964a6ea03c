"""Group failures that no known defect explains by the way in which they fail."""

from collections.abc import Iterable
from typing import Final

from continuity_conformance.core.verdicts import Result
from continuity_conformance.diagnose.symptoms import shows

_TELLING: Final = frozenset({"doubled", "partial", "foreign", "envelope", "valid"})
"""Kinds of difference that tell one fault from another wherever they show. The others mean something different in each area."""


def grouped(results: Iterable[Result]) -> list[list[Result]]:
    """The failures, in groups that one fault may explain."""
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        groups.setdefault(_way(result), []).append(result)
    return list(groups.values())


def _way(result: Result) -> tuple[str, ...]:
    first = next(iter(shows(result)), None)
    if first is None:
        return (result.id,)
    telling = tuple(sorted(_TELLING.intersection(first.kinds)))
    return telling or (result.area, *sorted(first.kinds or (first.expectation,)))
