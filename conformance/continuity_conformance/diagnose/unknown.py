"""Group failures that no known defect explains by the way in which they fail."""

from collections.abc import Iterable
from typing import Final

from continuity_conformance.core.verdicts import Result

TELLING: Final = frozenset({"doubled", "partial", "foreign"})
"""Kinds of difference that tell one fault from another wherever they show. The others mean something different in each area."""
FORMS: Final = "The form of answers and errors is not that of the OpenAPI document"
ADVICE: Final = "Recommendations (SHOULD) are not followed"
_BREAKS: Final = frozenset({"alive", "status 500", "status none"})
"""The server breaks at a request: 500, or no answer."""


def grouped(results: Iterable[Result]) -> list[list[Result]]:
    """The failures, in groups that one fault may explain."""
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        groups.setdefault(_way(result), []).append(result)
    return list(groups.values())


def minor_way(result: Result) -> str:
    """What a failure is about that breaks no binding promise to clients; empty for all others."""
    if result.class_name == "Strict":
        return FORMS
    return "" if result.level.binding else ADVICE


def _way(result: Result) -> tuple[str, ...]:
    """What the failures of one group have in common."""
    first = next(iter(result.shown_by), None)
    if minor_way(result):
        return (minor_way(result),)
    if first is None:
        return (result.id,)
    kinds = first.kinds or (first.expectation,)
    if _BREAKS.intersection(kinds):
        return ("breaks",)
    return tuple(sorted(TELLING.intersection(kinds))) or (result.area, *sorted(kinds))
