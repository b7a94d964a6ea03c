"""The causes of the failures, as a list for the terminal."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from continuity_conformance.core.cause import Cause
from continuity_conformance.results import cause_text

_INDENT: Final = " " * 6


def cause_lines(causes: Sequence[Cause], width: int, *, whole: bool) -> Iterator[str]:
    """A paragraph for each cause: what is wrong, what fails because of it, and one line of evidence if nothing is to be cut."""
    for number, cause in enumerate(causes, 1):
        yield from _wrapped(f"{number:4}. {cause_text.title(cause)}", width)
        yield from _wrapped(f"{_INDENT}{cause_text.effect(cause)}", width)
        if whole:
            yield from _wrapped(f"{_INDENT}{cause_text.standing(cause)}", width)
            yield from (
                line for each in cause.evidence[:1] for line in _wrapped(_INDENT + cause_text.shown(each), width)
            )


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False)
