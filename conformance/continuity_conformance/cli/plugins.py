"""`continuity plugins`: the targets and packs that are installed, and where each comes from."""

import argparse
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from continuity_conformance.core.entry_points import GROUPS, Plugin, PluginError, description, duplicates, plugins
from continuity_conformance.terminal.output import say, say_json, width

_NARROW: Final = 60
_WIDE: Final = 100


@dataclass(frozen=True, slots=True)
class Line:
    """One plugin. `error`: why it cannot be used; empty where it can."""

    plugin: Plugin
    about: str
    error: str = ""
    versions: tuple[str, ...] = ()
    """That `--target NAME==VERSION` takes; the newest is the last."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = """\
A target is a server that `--target NAME` starts. A pack adds requirements, which
every command knows beside those of the release. Any package brings them along, by
entry points in continuity.targets and continuity.packs (docs/how-to/plugin.md).
"""
    parser.add_argument("--json", action="store_true", help="as JSON")


def command(options: argparse.Namespace) -> int:
    """List all. One that cannot be used is no failure of the list."""
    lines = list(_lines())
    if options.json:
        say_json([_as_json(line) for line in lines])
    else:
        say("\n".join(_told(lines, min(max(width(), _NARROW), _WIDE))))
    return 0


def _lines() -> Iterator[Line]:
    targets = plugins("target")
    repeated = {id(later): earlier for earlier, later in duplicates(targets)}
    for plugin in targets:
        yield _target(plugin, repeated.get(id(plugin)))
    yield from _packs()


def _target(plugin: Plugin, earlier: Plugin | None) -> Line:
    try:
        made = plugin.create()
    except PluginError as error:
        return Line(plugin, "", str(error))
    taken = f"Its name is taken by the {earlier.title}." if earlier else ""
    return Line(plugin, description(made), taken, tuple(getattr(made, "versions", ())))


def _packs() -> Iterator[Line]:
    found = plugins("pack")
    if not found:
        return
    from continuity_conformance.suite.packs import installed  # noqa: PLC0415 - a pack brings the kit along

    packs = installed()
    usable = {each.plugin.title: each for each in packs.loaded}
    broken = {error.where: error for error in packs.broken}
    for plugin in found:
        loaded = usable.get(plugin.title)
        yield Line(plugin, loaded.about if loaded else "", "" if loaded else str(broken[plugin.title]))


def _as_json(line: Line) -> dict[str, object]:
    plugin = line.plugin
    return {
        "name": plugin.name,
        "kind": plugin.kind,
        "about": line.about,
        "versions": list(line.versions),
        "distribution": plugin.distribution,
        "version": plugin.version,
        "module": plugin.place,
        "group": GROUPS[plugin.kind],
        "error": line.error or None,
    }


def _told(lines: list[Line], columns: int) -> Iterator[str]:
    longest = max((len(line.plugin.name) for line in lines), default=0)
    for line in lines:
        plugin = line.plugin
        head = f"{plugin.name:{longest}}  {plugin.kind:6}  "
        indent = " " * len(head)
        said = [line.about] if line.about else []
        said += [f"versions {', '.join(line.versions)}"] if line.versions else []
        said += [f"from {plugin.distribution} {plugin.version}, {plugin.place}"]
        said += [f"CANNOT BE USED: {line.error}"] if line.error else []
        for number, text in enumerate(said):
            yield from textwrap.wrap(
                text,
                columns,
                initial_indent=indent if number else head,
                subsequent_indent=indent,
                break_on_hyphens=False,
            )
