"""What can be wrong with a spec file, one type for each kind.

    SpecError
    ├── UnreadableFileError        the file does not exist, or is not UTF-8 text
    ├── NotYamlError               the text is not YAML, or uses YAML that is not allowed here
    ├── NotJsonError               a file of test vectors is not JSON
    ├── SchemaViolationError       the data break their JSON Schema
    ├── InconsistentSpecError      each file is valid, but they contradict each other
    ├── UnknownRequirement         no requirement has this id
    └── UnknownScenario            the requirement has no scenario of this name

Every message has three parts: where, what is wrong, what to do now. This module knows no file format.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_ONE_DIGIT = re.compile(r"-(\d)$")


class SpecError(Exception):
    """A spec file, a profile, a baseline, or the name of a requirement or scenario is wrong."""

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


class UnknownRequirement(SpecError):  # noqa: N818 - the name says what is wrong, and callers catch it by this name
    pass


class UnknownScenario(SpecError):  # noqa: N818 - as above
    pass


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Find the known word that was probably meant."""
    by_lower_case = {candidate.lower(): candidate for candidate in known}
    word = _ONE_DIGIT.sub(r"-0\1", word.lower())  # DERIVE-4 means DERIVE-04, though DERIVE-14 is as similar
    matches = difflib.get_close_matches(word, list(by_lower_case), n=1, cutoff=0.6)
    return by_lower_case[matches[0]] if matches else None


def suggestion(word: str, known: Iterable[str]) -> str:
    """Write the third part of a message about an unknown word: the nearest known word, or all of them."""
    words = list(known)
    meant = nearest(word, words)
    if meant is not None:
        return f'Did you mean "{meant}"?'
    return f"Choose one of: {', '.join(words)}." if words else "Nothing is allowed here."
