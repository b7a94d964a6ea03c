"""Packs: requirements from other installed packages, with the checks and controls that they need.

Packs are loaded, linted, played and reported together with the release. Each has its own areas. They never change whether a target is
conformant: that verdict is about the release. A broken pack is reported by name; the release and the other packs are used without it.
"""

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from continuity_conformance.core.entry_points import Plugin, PluginError, description, duplicates, plugins
from continuity_conformance.target.control_context import PACK_CONTROLS, RELEASE_CONTROLS, Control
from continuity_spec import Requirement, Spec, SpecError, load_requirements, load_spec


class Pack:
    """The base class of packs. The entry point names a subclass; the first line of its docstring describes the pack."""

    def requirements(self) -> Iterable[Path]:
        """The YAML files with its requirements. Their areas must not be in the release or in another pack."""
        return ()

    def controls(self) -> Mapping[str, Control]:
        """The controls that its scenarios use (`control: {name: {…}}`). A control of the target with the same name takes precedence."""
        return {}


@dataclass(frozen=True, slots=True)
class LoadedPack:
    """A pack that can be used. `about`: its description."""

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
    """All installed packs: those that can be used, ordered by name, and the errors of the others."""

    loaded: tuple[LoadedPack, ...] = ()
    broken: tuple[PluginError, ...] = ()

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        return tuple(each for pack in self.loaded for each in pack.requirements)

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(file for pack in self.loaded for file in pack.files)


@cache
def installed() -> Packs:
    """Load every pack, once per process."""
    owners = dict.fromkeys((each.area for each in load_spec().requirements), "the release")
    all_packs = plugins("pack")
    earlier_of = {id(later): earlier for earlier, later in duplicates(all_packs)}
    loaded: list[LoadedPack] = []
    broken: list[PluginError] = []
    for plugin in all_packs:
        try:
            _require_unique_name(plugin, earlier_of.get(id(plugin)))
            pack = _load(plugin)
            _require_own_areas(pack, owners)
            _require_own_controls(pack)
        except PluginError as error:
            broken.append(error)
            continue
        owners |= dict.fromkeys((each.area for each in pack.requirements), f"the {plugin.title}")
        PACK_CONTROLS.update(pack.controls)
        loaded.append(pack)
    return Packs(tuple(loaded), tuple(broken))


def whole_spec() -> Spec:
    """The bundled spec, followed by the requirements of the packs."""
    spec = load_spec()
    return replace(spec, requirements=(*spec.requirements, *installed().requirements))


def _load(plugin: Plugin) -> LoadedPack:
    # The kit's own checks are registered first, so that a pack that reuses one of their names gets the error. They import the HTTP stack,
    # which commands such as `spec list` do not need, so they are imported only if there is a pack.
    importlib.import_module("continuity_conformance.checks")
    pack = plugin.create()
    if not isinstance(pack, Pack):
        raise plugin.error(
            f"{plugin.place} is not a pack.", "Derive the class from continuity_conformance.plugin.Pack."
        )
    try:
        files = tuple(Path(file) for file in pack.requirements())
        controls = dict(pack.controls())
        requirements = [replace(each, pack=plugin.name) for file in files for each in load_requirements(file)]
    except SpecError as error:
        raise plugin.error(f"{error.where}: {error.what}.", error.remedy) from error
    except Exception as error:
        raise plugin.error(f"it failed: {type(error).__name__}: {error}.") from error
    _require_requirements(plugin, requirements)
    _require_checks(plugin, requirements)
    _require_unique_ids(plugin, requirements)
    return LoadedPack(plugin, description(pack), files, tuple(requirements), controls)


def _require_requirements(plugin: Plugin, requirements: Sequence[Requirement]) -> None:
    if not requirements:
        raise plugin.error(
            "it has no requirements.",
            "Return the YAML files from its requirements(), and include them in the wheel as package data.",
        )


def _require_checks(plugin: Plugin, requirements: Sequence[Requirement]) -> None:
    from continuity_conformance.checks import registry  # noqa: PLC0415 - it imports the HTTP stack, see _load

    for each in requirements:
        if each.check is not None and each.check not in registry.CHECKS:
            raise plugin.error(
                f'{each.place}: {each.id}: there is no check "{each.check}".',
                "Import the module that registers it in the module of the pack.",
            )


def _require_unique_ids(plugin: Plugin, requirements: Iterable[Requirement]) -> None:
    first: dict[str, Requirement] = {}
    for each in requirements:
        if first.setdefault(each.id, each) is not each:
            raise plugin.error(
                f"{each.place}: the id {each.id} is taken by {first[each.id].place}.",
                "Use the next free number of the area.",
            )


def _require_unique_name(plugin: Plugin, earlier: Plugin | None) -> None:
    if earlier is not None:
        raise plugin.error(f"its name is taken by the {earlier.title}.", "Uninstall one of the two.")


def _require_own_areas(pack: LoadedPack, owners: Mapping[str, str]) -> None:
    """Ids must be unique, and a table of results has one row for each area."""
    for each in pack.requirements:
        if each.area in owners:
            raise pack.plugin.error(
                f"{each.place}: {each.id} is in the area {each.area}, which belongs to {owners[each.area]}.",
                "Give its requirements another area.",
            )


def _require_own_controls(pack: LoadedPack) -> None:
    """A pack must not provide a control of the release, because it would change what the release tests."""
    for name in pack.controls:
        if name in RELEASE_CONTROLS or name in PACK_CONTROLS:
            raise pack.plugin.error(f'the control "{name}" already exists.', "Give it another name.")
