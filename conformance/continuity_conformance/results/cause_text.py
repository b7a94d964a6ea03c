"""A cause in words, for the terminal and for every report."""

from collections.abc import Sequence
from typing import Final

from continuity_conformance.core.cause import Cause, ShownFailure
from continuity_conformance.core.text import cut, one_line

_LISTED: Final = 8
_SHOWN: Final = 160
_BESIDES: Final = 3


def heading(causes: Sequence[Cause], failures: int) -> str:
    """How many causes there are, and how many of the failures known defects explain."""
    matched = sum(len(cause.explains) for cause in causes if cause.defect)
    number = f"{len(causes)} cause{'s' if len(causes) > 1 else ''}"
    return f"{number}, {matched} of {failures} failures match a known defect"


def title(cause: Cause) -> str:
    """What is wrong, and where the same fault was seen."""
    text = cause.title.rstrip(".")
    return f"{text} ({cause.issue})" if cause.issue else text


def effect(cause: Cause) -> str:
    """Which requirements fail because of it, and how many could not be tested."""
    blocked = f"; blocks {listed(cause.blocks)}" if cause.blocks else ""
    return f"{listed(cause.explains)}{blocked}"


def standing(cause: Cause) -> str:
    """How sure the match is, and what speaks against it."""
    if cause.defect is None:
        return f"matches no known defect{_also(cause)}"
    parts = [f"{cause.confidence} confidence that it is the defect {cause.defect}"]
    parts += [f"or {', '.join(cause.alternatives)}"] if cause.alternatives else []
    parts += [f"against it: {listed(cause.contrary)} passed"] if cause.contrary else []
    return "; ".join(parts) + _also(cause)


def _also(cause: Cause) -> str:
    return f"; also fails: {', '.join(cause.besides[:_BESIDES])}" if cause.besides else ""


def shown(failure: ShownFailure) -> str:
    """The evidence in one line."""
    where = f' "{failure.scenario}"' if failure.scenario else ""
    step = f", step {failure.step.partition(' ')[0]}" if failure.step[:1].isdigit() else ""
    expected, actual = (cut(one_line(text), _SHOWN) for text in (failure.expected, failure.actual))
    return f"{failure.id}{where}{step}: {failure.expectation}: expected {expected}, actual {actual}"


def listed(ids: Sequence[str]) -> str:
    more = len(ids) - _LISTED
    return f"{', '.join(ids[:_LISTED])}{f' and {more} more' if more > 0 else ''}"
