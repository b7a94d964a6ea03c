"""Packs: requirements that a package of its own brings along, with the checks and controls that they need.

They are loaded, linted, played and reported together with the release, each under areas of its own. They never change whether a target is conformant: the
verdict is about the release. A pack that cannot be used is an error that names it; the others, and the release, go on without it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from continuity_conformance.core.entry_points import Plugin, PluginError, about, named_twice, plugins
from continuity_conformance.target.control_context import PACKED, RELEASED, Control
from continuity_spec import Requirement, Spec, SpecError, load, load_requirements

if TYPE_CHECKING:
    from continuity_conformance.checks.registry import Check


class Pack:
    """What a pack's entry point names: a subclass of this, whose docstring says in its first line what the pack is about."""

    def requirements(self) -> Iterable[Path]:
        """The files of its requirements. No other pack, nor the release, has their areas."""
        return ()

    def controls(self) -> Mapping[str, Control]:
        """What its scenarios make happen to a target by `control: {name: {…}}`, on any target that has no control of this name itself."""
        return {}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A pack that can be used."""

    plugin: Plugin
    about: str
    files: tuple[Path, ...]
    requirements: tuple[Requirement, ...]
    controls: Mapping[str, Control]

    @property
    def name(self) -> str:
        return self.plugin.name


@dataclass(frozen=True, slots=True)
class Packs:
    """All that are installed: those that can be used, in the order of their names, and why others cannot."""

    loaded: tuple[Loaded, ...] = ()
    broken: tuple[PluginError, ...] = ()

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        return tuple(each for pack in self.loaded for each in pack.requirements)

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(file for pack in self.loaded for file in pack.files)


@cache
def installed() -> Packs:
    """Load every pack, once in a process."""
    owners = dict.fromkeys((each.area for each in load().requirements), "the release")
    found = plugins("pack")
    repeated = {id(later): earlier for earlier, later in named_twice(found)}
    loaded: list[Loaded] = []
    broken: list[PluginError] = []
    for plugin in found:
        try:
            _demand_own_name(plugin, repeated.get(id(plugin)))
            pack = _load(plugin)
            _demand_own_areas(pack, owners)
            _demand_own_controls(pack)
        except PluginError as error:
            broken.append(error)
            continue
        owners |= dict.fromkeys((each.area for each in pack.requirements), f"the {plugin.title}")
        PACKED.update(pack.controls)
        loaded.append(pack)
    return Packs(tuple(loaded), tuple(broken))


def whole_spec() -> Spec:
    """The bundled spec, and behind it what the packs add."""
    spec = load()
    return replace(spec, requirements=(*spec.requirements, *installed().requirements))


def known_checks() -> Mapping[str, "Check"]:
    """The registered Python checks: the kit's own, and those of the packs that are loaded."""
    # Imported here because it takes as long as all the rest of `continuity spec list`, which needs no check.
    from continuity_conformance.checks.registry import CHECKS  # noqa: PLC0415

    return CHECKS


def _load(plugin: Plugin) -> Loaded:
    # The kit's own checks come first, so that a pack that takes one of their names is the one to blame.
    known_checks()
    made = plugin.made()
    if not isinstance(made, Pack):
        raise plugin.error(f"{plugin.place} is no pack.", "Derive the class from continuity_conformance.plugin.Pack.")
    try:
        files = tuple(Path(file) for file in made.requirements())
        controls = dict(made.controls())
        requirements = [replace(each, pack=plugin.name) for file in files for each in load_requirements(file)]
    except SpecError as trouble:
        raise plugin.error(f"{trouble.where}: {trouble.what}.", trouble.remedy) from trouble
    except Exception as trouble:
        raise plugin.error(f"it failed: {type(trouble).__name__}: {trouble}.") from trouble
    _demand_requirements(plugin, requirements)
    _demand_checks(plugin, requirements)
    _demand_one_each(plugin, requirements)
    return Loaded(plugin, about(made), files, tuple(requirements), controls)


def _demand_requirements(plugin: Plugin, requirements: Sequence[Requirement]) -> None:
    if not requirements:
        raise plugin.error(
            "it has no requirements.", "Let its requirements() name files; in a wheel they are package data."
        )


def _demand_checks(plugin: Plugin, requirements: Sequence[Requirement]) -> None:
    for each in requirements:
        if each.check is not None and each.check not in known_checks():
            raise plugin.error(
                f'{each.place}: {each.id}: there is no check "{each.check}".',
                "Import the module that registers it where the pack is defined.",
            )


def _demand_one_each(plugin: Plugin, requirements: Iterable[Requirement]) -> None:
    first: dict[str, Requirement] = {}
    for each in requirements:
        if first.setdefault(each.id, each) is not each:
            raise plugin.error(
                f"{each.place}: the id {each.id} is taken by {first[each.id].place}.",
                "Take the next free number of the area.",
            )


def _demand_own_name(plugin: Plugin, earlier: Plugin | None) -> None:
    if earlier is not None:
        raise plugin.error(f"its name is taken by the {earlier.title}.", "Uninstall one of the two.")


def _demand_own_areas(pack: Loaded, owners: Mapping[str, str]) -> None:
    """A result is known by its id, and a table has one row an area."""
    for each in pack.requirements:
        if each.area in owners:
            raise pack.plugin.error(
                f"{each.place}: {each.id} is in the area {each.area}, which is that of {owners[each.area]}.",
                "Give its requirements an area of their own.",
            )


def _demand_own_controls(pack: Loaded) -> None:
    """The release's are the target's own affair, or a pack would have a say in the verdict."""
    for name in pack.controls:
        if name in RELEASED or name in PACKED:
            raise pack.plugin.error(f'there is a control "{name}" already.', "Give it a name of its own.")
