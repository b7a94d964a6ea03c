"""Counts of verdicts: for each area, for each level, and in total.

The terminal and every report format take their numbers from here, so they always agree.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from continuity_conformance.core.verdicts import Result, Verdict, counts

NOT_SELECTED: Final = "not selected"
"""The reason of a result that the run was not asked for."""
HEADS: Final[Mapping[Verdict, str]] = {
    Verdict.PASS: "passed",
    Verdict.FAIL: "failed",
    Verdict.NOT_TESTED: "not tested",
    Verdict.NOT_APPLICABLE: "not applicable",
    Verdict.ERROR: "error",
}
"""The headings of the columns of a table of counts, in their order."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of one group."""

    name: str
    counts: Mapping[Verdict, int]

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def columns(results: Iterable[Result]) -> tuple[Verdict, ...]:
    """The verdicts that have a column. Errors are rare, and have one only where there are some."""
    number = counts(results)
    return tuple(verdict for verdict in HEADS if verdict is not Verdict.ERROR or number[verdict])


def by_area(results: Sequence[Result]) -> list[Tally]:
    return _grouped(results, lambda result: result.area)


def by_played_area(results: Sequence[Result]) -> list[Tally]:
    """Only the areas of which something was selected."""
    played = {result.area for result in results if result.reason != NOT_SELECTED}
    return [each for each in by_area(results) if each.name in played]


def by_level(results: Sequence[Result]) -> list[Tally]:
    return _grouped(results, lambda result: result.level.value)


def total(results: Iterable[Result]) -> Tally:
    return Tally("total", counts(results))


def _grouped(results: Sequence[Result], name: Callable[[Result], str]) -> list[Tally]:
    """One tally for each group, in the order of their first results."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(name(result), []).append(result)
    return [Tally(group, counts(members)) for group, members in groups.items()]
