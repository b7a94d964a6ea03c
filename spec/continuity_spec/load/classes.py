"""Read classes.yaml: the conformance classes, and the selections of scenarios across them.

A class or selection that names something that does not exist is raised as a SpecError at its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from continuity_spec.errors import InconsistentSpecError, suggestion
from continuity_spec.load.schema import validate
from continuity_spec.load.yaml_document import Document, read_yaml
from continuity_spec.model import ConformanceClass, Requirement, Selection

_Path = tuple[str | int, ...]


def load_classes(
    path: Path, requirements: Sequence[Requirement]
) -> tuple[tuple[ConformanceClass, ...], tuple[Selection, ...]]:
    """Read the classes and selections of a spec. A spec without the file has none."""
    if not path.exists():
        return (), ()
    document = read_yaml(path, path.name)
    validate(document, "classes")
    data: dict[str, Any] = document.data  # type: ignore[assignment] # the schema ensures it
    classes = tuple(
        ConformanceClass(
            each["name"],
            each["claim"],
            tuple(each.get("requires", ())),
            tuple(each["requirements"]),
            each.get("decides", True),
            each.get("essential", ""),
        )
        for each in data["classes"]
    )
    selections = tuple(Selection(each["name"], each["claim"], _scenarios(each)) for each in data["selections"])
    _check_names(document, classes, selections)
    _check_members(document, classes, {requirement.id for requirement in requirements})
    _check_scenarios(document, selections, {requirement.id: requirement for requirement in requirements})
    return classes, selections


def _scenarios(data: dict[str, Any]) -> Mapping[str, tuple[str, ...]]:
    return {identity: () if names == "all" else tuple(names) for identity, names in data["scenarios"].items()}


def _check_names(document: Document, classes: Sequence[ConformanceClass], selections: Sequence[Selection]) -> None:
    """Each name is used once, and a class requires only classes that stand above it: so there is no cycle."""
    above: list[str] = []
    for index, each in enumerate(classes):
        for number, name in enumerate(each.requires):
            _known(document, ("classes", index, "requires", number), name, above, "no class above this one is called")
        _new(document, ("classes", index, "name"), each.name, above)
        above.append(each.name)
    for index, selection in enumerate(selections):
        _new(document, ("selections", index, "name"), selection.name, above)
        above.append(selection.name)


def _check_members(document: Document, classes: Iterable[ConformanceClass], known: Collection[str]) -> None:
    seen: dict[str, str] = {}
    for index, each in enumerate(classes):
        if each.essential:
            _known(document, ("classes", index, "essential"), each.essential, each.ids, "this class does not have")
        for number, identity in enumerate(each.ids):
            path = ("classes", index, "requirements", number)
            _known(document, path, identity, known, "no requirement has the id")
            if seen.setdefault(identity, each.name) != each.name:
                what = f"{identity} is in the class {seen[identity]} too"
                raise InconsistentSpecError(str(document.place(path)), what, "Leave it in one class.")


def _check_scenarios(
    document: Document, selections: Iterable[Selection], requirements: Mapping[str, Requirement]
) -> None:
    for index, selection in enumerate(selections):
        for identity, names in selection.scenarios.items():
            path = ("selections", index, "scenarios", identity)
            _known(document, path, identity, requirements, "no requirement has the id")
            known = [scenario.name for scenario in requirements[identity].scenarios]
            for name in names:
                _known(document, path, name, known, f"{identity} has no scenario")


def _known(document: Document, path: _Path, wanted: str, known: Collection[str], what: str) -> None:
    if wanted not in known:
        raise InconsistentSpecError(str(document.place(path)), f"{what} {wanted}", suggestion(wanted, sorted(known)))


def _new(document: Document, path: _Path, name: str, used: Collection[str]) -> None:
    if name in used:
        where = str(document.place(path))
        raise InconsistentSpecError(where, f"the name {name} is used twice", "Give each class a name of its own.")
