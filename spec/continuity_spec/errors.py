"""What can be wrong with a spec file, as types.

    SpecError
    ├── UnreadableFileError        the file is not there, or is not text
    ├── NotYamlError               the text is no YAML, or says a key twice
    ├── NotJsonError               a vectors file is no JSON
    ├── SchemaViolationError       the data do not have the form that the JSON Schema gives
    ├── InconsistentSpecError      files that are right each contradict each other
    ├── UnknownRequirement         an id that no requirement has
    └── UnknownScenario            a name that no scenario of a requirement has

Every message has three parts: where, what was wrong, what to do now. This module knows no file format.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class SpecError(Exception):
    """A spec file, a profile or a requirement's name is wrong."""

    def __init__(self, where: str, what: str, remedy: str) -> None:
        super().__init__(where, what, remedy)
        self.where = where
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.where}: {self.what}. {self.remedy}"


class UnreadableFileError(SpecError):
    pass


class NotYamlError(SpecError):
    pass


class NotJsonError(SpecError):
    pass


class SchemaViolationError(SpecError):
    pass


class InconsistentSpecError(SpecError):
    pass


class UnknownRequirement(SpecError):  # noqa: N818 - it says what it is, and callers catch it by that name
    pass


class UnknownScenario(SpecError):  # noqa: N818 - likewise
    pass


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Find the known word that was probably meant."""
    by_lower_case = {candidate.lower(): candidate for candidate in known}
    matches = difflib.get_close_matches(word.lower(), list(by_lower_case), n=1, cutoff=0.6)
    return by_lower_case[matches[0]] if matches else None


def suggestion(word: str, known: Iterable[str]) -> str:
    """Write the third part of a message about a word that is not known."""
    words = list(known)
    meant = nearest(word, words)
    if meant is not None:
        return f'Did you mean "{meant}"?'
    return f"Known here: {', '.join(words)}." if words else "Nothing may stand here."
