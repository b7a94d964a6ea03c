"""Plugins: targets and packs that packages bring along, found by their entry points.

Finding them imports nothing. One that cannot be loaded is told by its name and by the package that it comes from.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from continuity_conformance.core.errors import KitError

GROUPS: Final[Mapping[str, str]] = {"target": "continuity.targets", "pack": "continuity.packs"}
"""The kinds of plugins, and the entry-point group of each."""
OURS: Final = "session-continuity"
_NAMELESS: Final = "a package without a name"


class PluginError(KitError):
    """A plugin that cannot be used. The message names it and its package."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point. `place`: the module and the name in it."""

    kind: str
    name: str
    distribution: str
    version: str
    place: str
    point: EntryPoint

    @property
    def title(self) -> str:
        return f"{self.kind} {self.name} ({f'{self.distribution} {self.version}'.strip()})"

    def made(self) -> object:
        """Import it and call it. Raises PluginError, whatever its code does."""
        try:
            return self.point.load()()
        except (Exception, SystemExit) as trouble:
            raise self.error(f"it cannot be loaded: {type(trouble).__name__}: {trouble}.") from trouble

    def error(self, what: str, do: str = "") -> PluginError:
        return PluginError(what, where=self.title, do=do or f"Mend or uninstall {self.distribution}.")


def plugins(kind: str) -> list[Plugin]:
    """All of a kind: the bundled ones first, then sorted by name and package."""
    found = [_plugin(kind, point) for point in entry_points(group=GROUPS[kind])]
    return sorted(found, key=lambda each: (each.distribution != OURS, each.name, each.distribution))


def about(made: object) -> str:
    """What a plugin says of itself in one line: the first of its docstring."""
    said = (type(made).__doc__ or "").strip()
    return said.partition("\n")[0].strip() or "says nothing of itself"


def named_twice(found: list[Plugin]) -> Iterator[tuple[Plugin, Plugin]]:
    """Plugins whose name an earlier one has."""
    first: dict[str, Plugin] = {}
    for each in found:
        if first.setdefault(each.name, each) is not each:
            yield first[each.name], each


def _plugin(kind: str, point: EntryPoint) -> Plugin:
    package = point.dist
    name, version = (package.name, package.version) if package is not None else (_NAMELESS, "")
    return Plugin(kind, point.name, name, version, point.value, point)
