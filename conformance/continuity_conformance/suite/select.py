"""Which requirements the user's words name: an id, a node id, or an area.

Knows the spec's ids only; neither pytest nor the target.
"""

from collections.abc import Iterable, Sequence
from pathlib import PurePath

from continuity_conformance.core.errors import UsageError
from continuity_spec import Requirement
from continuity_spec.errors import suggestion


def file_of(requirement: Requirement) -> str:
    """Name the file that the requirement is written in: the first half of its node id."""
    return PurePath(requirement.place.file).name


def node_id(requirement: Requirement) -> str:
    return f"{file_of(requirement)}::{requirement.id}"


def select(words: Sequence[str], requirements: Iterable[Requirement]) -> frozenset[str]:
    """Find the ids that the words name. Raises UsageError for a word that names none, with the nearest one that does."""
    known: dict[str, set[str]] = {}
    for requirement in requirements:
        for name in (requirement.id, requirement.area, file_of(requirement)):
            known.setdefault(name.lower(), set()).add(requirement.id)
    return frozenset(found for word in words for found in _named(word, known))


def in_areas(areas: Sequence[str], requirements: Sequence[Requirement]) -> frozenset[str]:
    """Find the ids of these areas; of all where none is named. Raises UsageError for an area that there is not."""
    known = list(dict.fromkeys(requirement.area for requirement in requirements))
    for area in areas:
        if area not in known:
            raise UsageError("there is no such area in this release.", where=area, do=suggestion(area, known))
    return frozenset(each.id for each in requirements if not areas or each.area in areas)


def _named(word: str, known: dict[str, set[str]]) -> set[str]:
    name = word.rpartition("::")[2]
    if name.lower() not in known:
        ids = sorted(set().union(*known.values()))
        hint = (
            suggestion(name, ids)
            if "-" in name
            else "Name ids (HISTORY-02), areas (HISTORY), or nothing for the whole release."
        )
        raise UsageError("no requirement of this release has this name.", where=word, do=hint)
    return known[name.lower()]


def one_each(requirements: Sequence[Requirement]) -> list[Requirement]:
    """The same, where no id is there twice: a result is known by its id. Raises UsageError for one that is."""
    first: dict[str, Requirement] = {}
    for requirement in requirements:
        if first.setdefault(requirement.id, requirement) is not requirement:
            taken = first[requirement.id].place.file
            raise UsageError(
                f"{requirement.id} is also in {taken}.",
                where=str(requirement.place),
                do="Run the two one after the other.",
            )
    return list(requirements)
