"""The causes of the failures, as a list for the terminal."""

from collections.abc import Iterator, Sequence
from typing import Final

from continuity_conformance.core.cause import Cause
from continuity_conformance.core.text import wrapped
from continuity_conformance.results import cause_text

_INDENT: Final = " " * 6


def cause_lines(causes: Sequence[Cause], *, whole: bool) -> Iterator[str]:
    """A paragraph for each cause: what is wrong, what fails because of it, and one line of evidence if nothing is to be cut."""
    for number, cause in enumerate(causes, 1):
        yield from wrapped(f"{number:4}. {cause_text.title(cause)}", _INDENT)
        yield from wrapped(f"{_INDENT}{cause_text.effect(cause)}", _INDENT)
        if whole:
            yield from wrapped(f"{_INDENT}{cause_text.standing(cause)}", _INDENT)
            yield from (
                line for each in cause.evidence[:1] for line in wrapped(_INDENT + cause_text.shown(each), _INDENT)
            )


def cause_titles(causes: Sequence[Cause]) -> Iterator[str]:
    """A line for each cause: the first requirement that fails because of it, and what is wrong."""
    for number, cause in enumerate(causes, 1):
        title = cause_text.title(cause)
        yield f"{number:4}. {title if title.startswith(cause.explains[0]) else f'{cause.explains[0]}  {title}'}"
