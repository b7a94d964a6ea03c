"""Read the files of a spec, check them against their schemas, and return them as the types of `model`.

Whatever is wrong with a file is raised as a SpecError that names the place. This module does not know who plays the scenarios.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from continuity_spec.errors import InconsistentSpecError, NotJsonError, UnreadableFileError, suggestion
from continuity_spec.foundations import inferred_foundations
from continuity_spec.load.classes import load_classes
from continuity_spec.load.schema import validate
from continuity_spec.load.steps import read_steps
from continuity_spec.load.yaml_document import Document, read_text, read_yaml
from continuity_spec.model import Always, Level, Release, Requirement, Scenario, Spec
from continuity_spec.needs import inferred_needs

BUNDLED = Path(__file__).parents[1]
"""The folder of the spec that this package contains."""

_Data = dict[str, Any]


def load_spec(folder: Path | None = None) -> Spec:
    """Load the spec in this folder, by default the bundled one. Each folder is read once in a process."""
    return _load((folder or BUNDLED).resolve())


def load_requirements(path: Path) -> tuple[Requirement, ...]:
    """Load the requirements of one file, wherever it is."""
    return _requirements(path, str(path))


def load_checked(path: Path, schema_name: str) -> object:
    """Load the data of a YAML file, and check them against a schema such as `profile`."""
    return load_checked_document(path, schema_name).data


def load_checked_document(path: Path, schema_name: str) -> Document:
    """Load a YAML file with the place of each value, and check its data against a schema."""
    document = read_yaml(path)
    validate(document, schema_name)
    return document


@cache
def _load(folder: Path) -> Spec:
    files = sorted((folder / "requirements").glob("*.yaml"))
    if not files:
        raise UnreadableFileError(
            str(folder), "there is no requirements/*.yaml in this folder", "Give the folder of a spec."
        )
    requirements = [entry for path in files for entry in _requirements(path, f"requirements/{path.name}")]
    _check_ids_are_unique(requirements)
    classes, selections = load_classes(folder / "classes.yaml", requirements)
    class_of = {identity: each.name for each in classes for identity in each.ids}
    requirements = [replace(entry, class_name=class_of.get(entry.id, "")) for entry in requirements]
    releases = [_release(path, requirements) for path in sorted((folder / "releases").glob("*.yaml"))]
    return Spec(tuple(requirements), {release.name: release for release in releases}, classes, selections)


def _requirements(path: Path, file: str) -> tuple[Requirement, ...]:
    document = read_yaml(path, file)
    validate(document, "requirements")
    entries: list[_Data] = document.data  # type: ignore[assignment] # the schema ensures it
    reader = _EntryReader(document, path)
    return tuple(reader.requirement(entry, index) for index, entry in enumerate(entries))


def _check_ids_are_unique(requirements: Iterable[Requirement]) -> None:
    seen: dict[str, Requirement] = {}
    for requirement in requirements:
        earlier = seen.setdefault(requirement.id, requirement)
        if earlier is not requirement:
            what = f"the id {requirement.id} is already used at {earlier.place}"
            raise InconsistentSpecError(str(requirement.place), what, "Use the next free number of the area.")


def _release(path: Path, requirements: Iterable[Requirement]) -> Release:
    file = f"releases/{path.name}"
    document = read_yaml(path, file)
    validate(document, "release")
    data: _Data = document.data  # type: ignore[assignment] # the schema ensures it
    known = {requirement.id for requirement in requirements}
    for index, wanted in enumerate(data["ids"]):
        if wanted not in known:
            where = str(document.place(("ids", index)))
            raise InconsistentSpecError(where, f"no requirement has the id {wanted}", suggestion(wanted, sorted(known)))
    return Release(data["release"], tuple(data["ids"]))


class _EntryReader:
    """Turns the checked data of one file into requirements."""

    def __init__(self, document: Document, path: Path) -> None:
        self._document = document
        self._path = path

    def requirement(self, data: _Data, index: int) -> Requirement:
        scenarios = self._scenarios(data, index)
        inferred = dict.fromkeys(identity for scenario in scenarios for identity in scenario.rests_on)
        return Requirement(
            id=data["id"],
            area=data["id"].split("-")[0],
            level=Level(data["level"]),
            text=data["text"],
            why=data["why"],
            origin=tuple(data.get("origin", ())),
            when=_when(data),
            needs=frozenset(data.get("needs", ())),
            scenarios=scenarios,
            always=_always(data["always"]) if "always" in data else None,
            check=data.get("check"),
            manual=data.get("manual"),
            refuted_by=tuple(data.get("refuted_by", ())),
            rests_on=tuple(dict.fromkeys(each.partition(" ")[0] for each in data.get("rests_on", inferred))),
            place=self._document.place((index,)),
        )

    def _scenarios(self, data: _Data, index: int) -> tuple[Scenario, ...]:
        if "steps" in data:
            return (self._scenario(data, data, (index,)),)
        scenarios = enumerate(data.get("scenarios", ()))
        return tuple(self._scenario(own, data, (index, "scenarios", number)) for number, own in scenarios)

    def _scenario(self, own: _Data, entry: _Data, path: tuple[str | int, ...]) -> Scenario:
        steps = read_steps(self._document, own["steps"], (*path, "steps"))
        declared = frozenset(own.get("needs", ())) | frozenset(entry.get("needs", ()))
        examples = own.get("examples", [])
        vectors = examples if isinstance(examples, str) else None
        return Scenario(
            name=own.get("name", ""),
            steps=steps,
            when={**_when(entry), **_when(own)},
            needs=declared | inferred_needs(steps),
            examples=tuple(self._vectors(vectors, path) if vectors else examples),
            vectors=vectors,
            copies=own.get("copies", 1),
            rests_on=tuple(entry["rests_on"] if "rests_on" in entry else inferred_foundations(entry["id"], steps)),
        )

    def _vectors(self, name: str, path: tuple[str | int, ...]) -> list[_Data]:
        """Read a file of test vectors, beside the folder of the requirements or inside it."""
        folders = (self._path.parent.parent, self._path.parent)
        file = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if file is None:
            where = str(self._document.place((*path, "examples")))
            raise UnreadableFileError(
                where, f"there is no file {name}", "Put it next to the folder of the requirements."
            )
        return _vectors(read_text(file, name), name)


def _vectors(text: str, name: str) -> list[_Data]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise NotJsonError(
            f"{name}:{error.lineno}:{error.colno}", f"not JSON: {error.msg}", "Correct it here."
        ) from error
    except RecursionError as error:
        raise NotJsonError(name, "lists and objects are nested too deep", "Use fewer levels.") from error
    except ValueError as error:  # Python limits the digits of a number
        raise NotJsonError(name, "a number has too many digits", "Use fewer digits.") from error
    if not isinstance(data, list) or not data or not all(isinstance(item, dict) and item for item in data):
        raise NotJsonError(name, "vectors are not a list of objects", "Write [{…}, …] with at least one object.")
    return data


def _when(data: _Data) -> Mapping[str, tuple[str, ...]]:
    when: _Data = data.get("when", {})
    return {option: tuple(value) if isinstance(value, list) else (value,) for option, value in when.items()}


def _always(data: _Data) -> Always:
    return Always(frozenset(data["after"]), data.get("answered", "2xx"), data.get("streamed"), data["expect"])
