"""`continuity plugins`: the targets and packs that are installed, and where each comes from."""

import argparse
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from continuity_conformance.core.entry_points import GROUPS, Plugin, PluginError, description, duplicates, plugins
from continuity_conformance.suite.packs import installed
from continuity_conformance.terminal.output import say, say_json, width

_NARROW: Final = 60
_WIDE: Final = 100


@dataclass(frozen=True, slots=True)
class PluginRow:
    """One plugin. `error`: why it cannot be used; empty if it can."""

    plugin: Plugin
    about: str
    error: str = ""
    versions: tuple[str, ...] = ()
    """The versions for `--target NAME==VERSION`, the newest last."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = """\
A target is a server that `--target NAME` starts. A pack adds requirements to
those of the release, for every command. Any package can provide them, by entry
points in continuity.targets and continuity.packs (docs/how-to/plugin.md).
"""
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(options: argparse.Namespace) -> int:
    """List all plugins; a plugin that cannot be used does not change the exit code."""
    rows = list(_rows())
    if options.json:
        say_json([_as_json(row) for row in rows])
    else:
        say("\n".join(_lines(rows, min(max(width(), _NARROW), _WIDE))))
    return 0


def _rows() -> Iterator[PluginRow]:
    targets = plugins("target")
    repeated = {id(later): earlier for earlier, later in duplicates(targets)}
    for plugin in targets:
        yield _target(plugin, repeated.get(id(plugin)))
    yield from _packs()


def _target(plugin: Plugin, earlier: Plugin | None) -> PluginRow:
    try:
        made = plugin.create()
    except PluginError as error:
        return PluginRow(plugin, "", str(error))
    taken = f"Its name is taken by the {earlier.title}." if earlier else ""
    return PluginRow(plugin, description(made), taken, tuple(getattr(made, "versions", ())))


def _packs() -> Iterator[PluginRow]:
    found = plugins("pack")
    if not found:
        return
    packs = installed()
    usable = {each.plugin.title: each for each in packs.loaded}
    broken = {error.where: error for error in packs.broken}
    for plugin in found:
        loaded = usable.get(plugin.title)
        yield PluginRow(plugin, loaded.about if loaded else "", "" if loaded else str(broken[plugin.title]))


def _as_json(row: PluginRow) -> dict[str, object]:
    plugin = row.plugin
    return {
        "name": plugin.name,
        "kind": plugin.kind,
        "about": row.about,
        "versions": list(row.versions),
        "distribution": plugin.distribution,
        "version": plugin.version,
        "module": plugin.place,
        "group": GROUPS[plugin.kind],
        "error": row.error or None,
    }


def _lines(rows: list[PluginRow], columns: int) -> Iterator[str]:
    longest = max((len(row.plugin.name) for row in rows), default=0)
    for row in rows:
        plugin = row.plugin
        head = f"{plugin.name:{longest}}  {plugin.kind:6}  "
        indent = " " * len(head)
        texts = [row.about] if row.about else []
        texts += [f"versions {', '.join(row.versions)}"] if row.versions else []
        texts += [f"from {plugin.distribution} {plugin.version}, {plugin.place}"]
        texts += [f"CANNOT BE USED: {row.error}"] if row.error else []
        for number, text in enumerate(texts):
            yield from textwrap.wrap(
                text,
                columns,
                initial_indent=indent if number else head,
                subsequent_indent=indent,
                break_on_hyphens=False,
            )
