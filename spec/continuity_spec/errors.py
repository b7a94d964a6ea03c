"""What can be wrong with a spec file, as types.

    SpecError
    ├── UnreadableFile        the file is not there, or is not text
    ├── NotYaml               the text is no YAML, or says a key twice
    ├── NotJson               a vectors file is no JSON
    ├── SchemaViolation       the data do not have the form that the JSON Schema gives
    ├── InconsistentSpec      files that are right each contradict each other
    └── UnknownRequirement    an id that no requirement has

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


class UnreadableFile(SpecError):
    pass


class NotYaml(SpecError):
    pass


class NotJson(SpecError):
    pass


class SchemaViolation(SpecError):
    pass


class InconsistentSpec(SpecError):
    pass


class UnknownRequirement(SpecError):
    pass


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    by_lower_case = {candidate.lower(): candidate for candidate in known}
    matches = difflib.get_close_matches(word.lower(), list(by_lower_case), n=1, cutoff=0.6)
    return by_lower_case[matches[0]] if matches else None


def suggestion(word: str, known: Iterable[str]) -> str:
    """The third part of a message about a word that is not known."""
    words = list(known)
    meant = nearest(word, words)
    if meant is not None:
        return f'Did you mean "{meant}"?'
    return f"Known here: {', '.join(words)}." if words else "Nothing may stand here."
