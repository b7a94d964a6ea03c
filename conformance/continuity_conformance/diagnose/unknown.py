"""Group failures that no known defect explains by the way in which they fail."""

from collections.abc import Iterable
from typing import Final

from continuity_conformance.core.verdicts import Evidence, Result
from continuity_conformance.diagnose.circumstances import DISTURBED, circumstances, refusal

TELLING: Final = frozenset({"doubled", "partial", "foreign"})
"""Kinds of difference that tell one fault from another wherever they show. The others mean something different in each area."""
STRICT: Final = "Strict"
"""The class about forms only."""
FORMS: Final = "The form of answers and errors is not that of the OpenAPI document"
ADVICE: Final = "Recommendations (SHOULD) are not followed"
BREAKS: Final = "Some requests break the server: 500, or no answer at all"
LIMITED: Final = "Requests of the run are refused with 429: the server takes fewer at a time than the run sends"
_TOO_MANY: Final = "status 429"
_BROKEN: Final = frozenset({"alive", "status 500", "status none"})


def grouped(failures: Iterable[tuple[Result, Evidence | None]]) -> list[list[Result]]:
    """The failures, each with its clearest evidence, in groups that one fault may explain."""
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result, shown in failures:
        groups.setdefault(_way(result, shown), []).append(result)
    return list(groups.values())


def common_way(result: Result, shown: Evidence | None) -> str:
    """The way in which a failure, with this evidence, is like others of all areas: one about forms, a recommendation, a server that breaks. Empty for all others."""
    if result.class_name == STRICT:
        return FORMS
    if not result.level.binding:
        return ADVICE
    if shown is None or DISTURBED & circumstances(result, shown):
        return ""
    if _TOO_MANY in _kinds(shown):
        return LIMITED
    return BREAKS if _breaks(result, shown) else ""


def _breaks(result: Result, shown: Evidence) -> bool:
    """Whether a request breaks the server. A turn that fails after something was done to an earlier one is another fault."""
    return any(_BROKEN.intersection(_kinds(each)) for each in (shown, *result.shown_by))


def _kinds(shown: Evidence) -> tuple[str, ...]:
    return shown.kinds or (shown.expectation,)


def _way(result: Result, shown: Evidence | None) -> tuple[str, ...]:
    """What the failures of one group have in common."""
    if way := common_way(result, shown):
        return (way,)
    if shown is None:
        return (result.id,)
    if words := refusal(shown):
        return (words,)
    kinds, after = _kinds(shown), sorted(circumstances(result, shown))
    telling = sorted(TELLING.intersection(kinds))
    if telling == ["partial"]:
        return ("partial", *after)
    return tuple(telling) or (result.area, *sorted(kinds), *after)
