"""Whether two requirements fail in the same way, so that the fault of one may be that of the other."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from continuity_conformance.core.verdicts import Evidence, Result
from continuity_conformance.diagnose.circumstances import (
    ANOTHER_PRINCIPAL,
    FailedRequest,
    circumstances,
    failed_request,
)
from continuity_conformance.diagnose.unknown import STRICT, TELLING

_DOUBLED: Final = "doubled"
_FOREIGN: Final = "foreign"


class Look(NamedTuple):
    """How a requirement fails, by its clearest evidence."""

    area: str
    is_strict: bool
    kinds: frozenset[str]
    circumstances: frozenset[str]
    request: FailedRequest
    all_kinds: frozenset[str]
    """Those of all its evidence."""


def look(result: Result, shown: Evidence) -> Look:
    """How it fails in most of its scenarios. Of kinds that are as frequent, the fewest count: the more there are at once, the more faults may be in it."""
    shown = next(iter(most_frequent(result.shown_by)), shown)
    return Look(
        result.area,
        result.class_name == STRICT,
        _kinds(shown),
        circumstances(result, shown),
        failed_request(shown),
        frozenset(kind for each in (shown, *result.shown_by) for kind in _kinds(each)),
    )


def _kinds(evidence: Evidence) -> frozenset[str]:
    return frozenset(evidence.kinds or (evidence.expectation,))


def most_frequent(failing: Sequence[Evidence]) -> list[Evidence]:
    """The evidence with the kinds of difference that most of it has."""
    often = Counter(each.kinds for each in failing)
    kinds = min(often, key=lambda each: (-often[each], len(each)), default=())
    return [each for each in failing if each.kinds == kinds]


def are_alike(one: Look, other: Look) -> bool:
    """Whether two requirements fail in the same way: in one area, or in a way that means the same in all areas. Forms are alike only among themselves."""
    if one.is_strict != other.is_strict:
        return False
    if ANOTHER_PRINCIPAL in one.circumstances & other.circumstances:
        return bool(one.all_kinds & other.all_kinds)
    if not one.kinds & other.kinds:
        return False
    if one.kinds <= TELLING:
        return other.kinds <= TELLING and _are_alike_turns(one, other)
    return one.area == other.area and one.kinds == other.kinds and _have_one_occasion(one, other)


def _have_one_occasion(one: Look, other: Look) -> bool:
    """Whether the same was done to the turns of both; where nothing was done to one of them, whether the same request fails."""
    if one.circumstances and other.circumstances:
        return bool(one.circumstances & other.circumstances)
    return one.request == other.request


def _are_alike_turns(one: Look, other: Look) -> bool:
    """A history that is doubled shows halves of turns too. Halves alone are left by many faults, so they are alike only after the same was done to a turn."""
    if (_DOUBLED in one.kinds) != (_DOUBLED in other.kinds):
        return False
    same_endpoint = _DOUBLED in one.kinds and one.request.verb == other.request.verb
    same_area = _FOREIGN in one.kinds & other.kinds and one.area == other.area
    return same_endpoint or same_area or bool(one.circumstances & other.circumstances)
