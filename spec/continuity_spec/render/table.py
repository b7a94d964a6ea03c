"""All requirements of a spec, as JSON objects and as a table for a terminal.

Pure functions from a spec to data and text. They print nothing.
"""

from __future__ import annotations

from continuity_spec.model import Requirement, Spec
from continuity_spec.render.wrap import wrap

_MIN_WIDTH = 40


def as_rows(spec: Spec) -> list[dict[str, object]]:
    """Return one JSON object for each requirement."""
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
    """Write id, level and text of each requirement, on one line or more."""
    id_width = max((len(requirement.id) for requirement in spec.requirements), default=0)
    indent = id_width + len("  SHOULD NOT  ")
    lines = [
        wrap(f"{each.id:<{id_width}}  {each.level.value:<10}  ", each.text, indent, max(width, _MIN_WIDTH))
        for each in spec.requirements
    ]
    return "\n".join(lines)
