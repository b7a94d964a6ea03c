"""The release that a run checks: its name, and its requirements in the order of their files."""

from dataclasses import dataclass, field, replace

from continuity_conformance.core.errors import KitError, UsageError
from continuity_conformance.suite.packs import Packs, installed
from continuity_spec import Requirement, Spec, SpecError, load_spec
from continuity_spec.errors import suggestion


@dataclass(frozen=True, slots=True)
class ReleasedSpec:
    """`requirements`: those of the release, drafts that no release lists yet, and those of packs. All counts of a report add up to them."""

    name: str
    requirements: tuple[Requirement, ...]
    packs: Packs = field(default_factory=Packs)
    """The packs that are played too. Their requirements are the last ones, and do not count for the release's verdict."""


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
    return _with_packs(
        ReleasedSpec(name, tuple(requirement for requirement in spec.requirements if requirement.id in ids))
    )


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
    return ReleasedSpec(name, tuple(requirement for requirement in spec.requirements if requirement.id in ids))


def _as_numbers(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split(".") if part.isdigit())
