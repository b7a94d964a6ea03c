"""The spec for people: as rows, as a table, and what lint says of files.

Pure functions from the spec to data and text. They print nothing and know no command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from continuity_spec.errors import SpecError
from continuity_spec.lint import lint_requirements
from continuity_spec.loader import load_requirements
from continuity_spec.schema import violations
from continuity_spec.screen import wrapped
from continuity_spec.yaml_source import read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from continuity_spec.model import Requirement, Spec

_MIN_WIDTH = 40


def as_rows(spec: Spec) -> list[dict[str, object]]:
    """Give one JSON object for each requirement."""
    return [_row(requirement, spec) for requirement in spec.requirements]


def _row(requirement: Requirement, spec: Spec) -> dict[str, object]:
    return {
        "id": requirement.id,
        "area": requirement.area,
        "level": requirement.level.value,
        "text": requirement.text,
        "why": requirement.why,
        "origin": list(requirement.origin),
        "when": {option: list(values) for option, values in requirement.when.items()},
        "needs": sorted(requirement.needs),
        "checked_by": requirement.how,
        "scenarios": [scenario.name for scenario in requirement.scenarios if scenario.name],
        "check": requirement.check,
        "manual": requirement.manual,
        "refuted_by": list(requirement.refuted_by),
        "releases": [release.name for release in spec.releases.values() if requirement.id in release.ids],
        "place": str(requirement.place),
        "pack": requirement.pack or None,
    }


def as_table(spec: Spec, width: int) -> str:
    """Give one line or more for each requirement: id, level, text."""
    id_width = max((len(requirement.id) for requirement in spec.requirements), default=0)
    indent = id_width + len("  SHOULD NOT  ")
    lines = [
        wrapped(f"{entry.id:<{id_width}}  {entry.level.value:<10}  ", entry.text, indent, max(width, _MIN_WIDTH))
        for entry in spec.requirements
    ]
    return "\n".join(lines)


def lint(paths: Iterable[Path]) -> list[str]:
    """Tell everything that is wrong with these files of requirements; nothing where all is well."""
    readable: list[Requirement] = []
    complaints: list[str] = []
    for path in paths:
        try:
            broken = violations(read_yaml(path), "requirements")
            readable += [] if broken else load_requirements(path)
        except SpecError as error:
            broken = [error]
        complaints += map(str, broken)
    return [*complaints, *map(str, lint_requirements(readable))]
