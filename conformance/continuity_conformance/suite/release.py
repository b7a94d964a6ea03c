"""The release that a run is about: its name, and its requirements in the order of their files."""

from dataclasses import dataclass, field, replace

from continuity_conformance.core.errors import KitError, UsageError
from continuity_conformance.suite.packs import Packs, installed
from continuity_spec import Requirement, Spec, SpecError, load_spec
from continuity_spec.errors import suggestion


@dataclass(frozen=True, slots=True)
class ReleasedSpec:
    """Every number of a report adds up to `requirements`: the ids of the release, the drafts that no release lists yet, and what packs add."""

    name: str
    requirements: tuple[Requirement, ...]
    packs: Packs = field(default_factory=Packs)
    """What is played beside it: its requirements are the last ones, and say nothing about the release."""


def newest() -> ReleasedSpec:
    """Load the newest release of the bundled spec, and the packs. Raises KitError where the installed files are damaged."""
    spec = _installed()
    return _with_packs(with_drafts(spec, max(spec.releases, key=_as_numbers)))


def released(name: str) -> ReleasedSpec:
    """Load one release as it was frozen, without drafts, and the packs. Raises UsageError for a name that none has."""
    spec = _installed()
    if name not in spec.releases:
        raise UsageError("there is no such release.", where=name, do=suggestion(name, sorted(spec.releases)))
    ids = frozenset(spec.releases[name].ids)
    return _with_packs(
        ReleasedSpec(name, tuple(requirement for requirement in spec.requirements if requirement.id in ids))
    )


def _with_packs(release: ReleasedSpec) -> ReleasedSpec:
    packs = installed()
    return replace(release, requirements=(*release.requirements, *packs.requirements), packs=packs)


def _installed() -> Spec:
    try:
        spec = load_spec()
    except SpecError as trouble:
        raise KitError(trouble.what, where=trouble.where, do="Install session-continuity again.") from trouble
    if not spec.releases:
        raise KitError("there is no release in the installed spec.", do="Install session-continuity again.")
    return spec


def with_drafts(spec: Spec, name: str) -> ReleasedSpec:
    """A release, and what was written since: a new entry is checked at once, without another file to edit."""
    released = frozenset(identity for release in spec.releases.values() for identity in release.ids)
    ids = frozenset(spec.releases[name].ids) | {entry.id for entry in spec.requirements if entry.id not in released}
    return ReleasedSpec(name, tuple(requirement for requirement in spec.requirements if requirement.id in ids))


def _as_numbers(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split(".") if part.isdigit())
