"""Select the requirements that the user names: by id, by pytest node id, by class or by area.

Knows only the ids of the spec, neither pytest nor the target.
"""

from collections.abc import Iterable, Sequence
from pathlib import PurePath

from continuity_conformance.core.errors import UsageError
from continuity_conformance.suite.release import ReleasedSpec
from continuity_spec import Requirement
from continuity_spec.errors import suggestion


def file_of(requirement: Requirement) -> str:
    """The name of the file that the requirement is in: the first half of its node id."""
    return PurePath(requirement.place.file).name


def node_id(requirement: Requirement) -> str:
    return f"{file_of(requirement)}::{requirement.id}"


def select(words: Sequence[str], requirements: Iterable[Requirement]) -> frozenset[str]:
    """The ids that the words name. Raises UsageError for an unknown name, and suggests a similar one."""
    known: dict[str, set[str]] = {}
    for requirement in requirements:
        for name in (requirement.id, requirement.area, file_of(requirement)):
            known.setdefault(name.lower(), set()).add(requirement.id)
    return frozenset(each for word in words for each in _named(word, known))


def in_areas(areas: Sequence[str], requirements: Sequence[Requirement]) -> frozenset[str]:
    """The ids of these areas, or all ids if no area is given. Raises UsageError for an unknown area."""
    known = list(dict.fromkeys(requirement.area for requirement in requirements))
    for area in areas:
        if area not in known:
            raise UsageError("this release has no such area.", where=area, do=suggestion(area, known))
    return frozenset(each.id for each in requirements if not areas or each.area in areas)


def in_classes(names: Sequence[str], release: ReleasedSpec) -> frozenset[str]:
    """The ids of these classes, of the classes that they require, and of these selections; all ids if no name is given."""
    if not names:
        return frozenset(each.id for each in release.requirements)
    members = {each.name: set(each.ids) for each in release.classes}
    for each in release.classes:
        members[each.name].update(*(members[required] for required in each.requires))
    members |= {each.name: set(each.scenarios) for each in release.selections}
    for name in names:
        if name not in members:
            raise UsageError("there is no such class.", where=name, do=suggestion(name, list(members)))
    wanted = set().union(*(members[name] for name in names))
    return frozenset(each.id for each in release.requirements if each.id in wanted)


def deciding(names: Sequence[str], release: ReleasedSpec) -> frozenset[str]:
    """The ids whose verdicts decide about the run: those of the named classes, or else of every class that decides, and of the packs."""
    if names:
        return in_classes(names, release)
    members = {identity for each in release.classes if each.decides for identity in each.ids}
    return frozenset(each.id for each in release.requirements if each.pack or each.id in members)


def _named(word: str, known: dict[str, set[str]]) -> set[str]:
    name = word.rpartition("::")[2]
    if name.lower() not in known:
        ids = sorted(set().union(*known.values()))
        hint = (
            suggestion(name, ids)
            if "-" in name
            else "Give ids (HISTORY-02) or areas (HISTORY), or nothing for the whole release."
        )
        raise UsageError("this release has no requirement or area of this name.", where=word, do=hint)
    return known[name.lower()]


def require_unique_ids(requirements: Sequence[Requirement]) -> list[Requirement]:
    """Return the requirements as a list. Raises UsageError if two have the same id, because results are identified by id."""
    first: dict[str, Requirement] = {}
    for requirement in requirements:
        if first.setdefault(requirement.id, requirement) is not requirement:
            other = first[requirement.id].place.file
            raise UsageError(
                f"{requirement.id} is also in {other}.",
                where=str(requirement.place),
                do="Test the two in separate runs.",
            )
    return list(requirements)
