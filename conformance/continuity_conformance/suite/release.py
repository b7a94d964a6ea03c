"""The release that a run checks: its name, and its requirements in the order of their files."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from continuity_conformance.core.errors import KitError, UsageError
from continuity_conformance.suite.packs import Packs, installed
from continuity_spec import ConformanceClass, Requirement, Selection, Spec, SpecError, load_spec
from continuity_spec.errors import suggestion


@dataclass(frozen=True, slots=True)
class ReleasedSpec:
    """`requirements`: those of the release, drafts that no release lists yet, and those of packs. All counts of a report add up to them."""

    name: str
    requirements: tuple[Requirement, ...]
    packs: Packs = field(default_factory=Packs)
    """The packs that are played too. Their requirements are the last ones, and do not count for the release's verdict."""
    classes: tuple[ConformanceClass, ...] = ()
    selections: tuple[Selection, ...] = ()

    def narrowed(self, names: Sequence[str]) -> Self:
        """The release in which the requirements of these selections have only the scenarios that the selections name.

        A requirement that one of the named classes has keeps all its scenarios.
        """
        chosen = [each for each in self.selections if each.name in names]
        in_a_class = {identity for each in self.classes if each.name in names for identity in each.ids}
        wanted: dict[str, set[str]] = {}
        for selection in chosen:
            for identity, scenarios in selection.scenarios.items():
                wanted.setdefault(identity, set()).update(scenarios)
        partly = {identity: names for identity, names in wanted.items() if names and identity not in in_a_class}
        return replace(self, requirements=tuple(_with_scenarios(each, partly) for each in self.requirements))


def newest() -> ReleasedSpec:
    """Load the newest release of the bundled spec with its drafts, and the packs. Raises KitError if the installed files are damaged."""
    spec = _installed()
    return _with_packs(with_drafts(spec, max(spec.releases, key=_as_numbers)))


def released(name: str) -> ReleasedSpec:
    """Load one release without drafts, and the packs. Raises UsageError for an unknown name."""
    spec = _installed()
    if name not in spec.releases:
        raise UsageError("there is no such release.", where=name, do=suggestion(name, sorted(spec.releases)))
    ids = frozenset(spec.releases[name].ids)
    return _with_packs(_released(spec, name, ids))


def _with_packs(release: ReleasedSpec) -> ReleasedSpec:
    packs = installed()
    return replace(release, requirements=(*release.requirements, *packs.requirements), packs=packs)


def _installed() -> Spec:
    try:
        spec = load_spec()
    except SpecError as error:
        raise KitError(error.what, where=error.where, do="Reinstall session-continuity.") from error
    if not spec.releases:
        raise KitError("there is no release in the installed spec.", do="Reinstall session-continuity.")
    return spec


def with_drafts(spec: Spec, name: str) -> ReleasedSpec:
    """A release and all drafts: a new requirement is checked at once, without another file to edit."""
    released = frozenset(identity for release in spec.releases.values() for identity in release.ids)
    ids = frozenset(spec.releases[name].ids) | {entry.id for entry in spec.requirements if entry.id not in released}
    return _released(spec, name, ids)


def _released(spec: Spec, name: str, ids: Collection[str]) -> ReleasedSpec:
    requirements = tuple(requirement for requirement in spec.requirements if requirement.id in ids)
    return ReleasedSpec(name, requirements, classes=spec.classes, selections=spec.selections)


def _with_scenarios(requirement: Requirement, wanted: Mapping[str, Collection[str]]) -> Requirement:
    if requirement.id not in wanted:
        return requirement
    kept = tuple(each for each in requirement.scenarios if each.name in wanted[requirement.id])
    return replace(requirement, scenarios=kept)


def _as_numbers(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split(".") if part.isdigit())
