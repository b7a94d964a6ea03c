"""Find plugins: targets and packs that installed packages declare as entry points.

Finding them imports no plugin code. An error in a plugin names the plugin and its package.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from continuity_conformance.core.errors import KitError

GROUPS: Final[Mapping[str, str]] = {"target": "continuity.targets", "pack": "continuity.packs"}
"""The entry-point group of each kind of plugin."""
OURS: Final = "session-continuity"
_UNKNOWN_PACKAGE: Final = "a package without a name"


class PluginError(KitError):
    """A plugin that cannot be used. The message names it and its package."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point. `place`: `module:name`, as the package declares it."""

    kind: str
    name: str
    distribution: str
    version: str
    place: str
    point: EntryPoint

    @property
    def title(self) -> str:
        return f"{self.kind} {self.name} ({f'{self.distribution} {self.version}'.strip()})"

    def create(self) -> object:
        """Import the plugin's class and create an object of it. Every error of its code becomes a PluginError."""
        try:
            return self.point.load()()
        except (Exception, SystemExit) as error:
            raise self.error(f"it cannot be loaded: {type(error).__name__}: {error}.") from error

    def error(self, what: str, do: str = "") -> PluginError:
        return PluginError(what, where=self.title, do=do or f"Fix or uninstall {self.distribution}.")


def plugins(kind: str) -> list[Plugin]:
    """All plugins of a kind: the bundled ones first, then sorted by name and package."""
    unsorted = [_plugin(kind, point) for point in entry_points(group=GROUPS[kind])]
    return sorted(unsorted, key=lambda each: (each.distribution != OURS, each.name, each.distribution))


def description(instance: object) -> str:
    """The first line of the docstring of a plugin's class."""
    docstring = (type(instance).__doc__ or "").strip()
    return docstring.partition("\n")[0].strip() or "(no docstring)"


def duplicates(plugins: list[Plugin]) -> Iterator[tuple[Plugin, Plugin]]:
    """Each plugin whose name an earlier one already has: the earlier one and this one."""
    first: dict[str, Plugin] = {}
    for each in plugins:
        if first.setdefault(each.name, each) is not each:
            yield first[each.name], each


def _plugin(kind: str, point: EntryPoint) -> Plugin:
    package = point.dist
    name, version = (package.name, package.version) if package is not None else (_UNKNOWN_PACKAGE, "")
    return Plugin(kind, point.name, name, version, point.value, point)
