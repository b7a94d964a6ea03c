"""All requirements of a spec, as JSON objects and as a table for a terminal.

Pure functions from a spec to data and text. They print nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from continuity_spec.model import ConformanceClass, Requirement, Spec
from continuity_spec.render.wrap import wrap

_MIN_WIDTH = 40


def as_rows(spec: Spec) -> list[dict[str, object]]:
    """Return one JSON object for each requirement."""
    return [_row(requirement, spec) for requirement in spec.requirements]


def _row(requirement: Requirement, spec: Spec) -> dict[str, object]:
    return {
        "id": requirement.id,
        "area": requirement.area,
        "class": requirement.class_name or None,
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
    """Write each class with its claim, and below it id, level and text of its requirements. What is in no class comes last."""
    width = max(width, _MIN_WIDTH)
    by_id = {requirement.id: requirement for requirement in spec.requirements}
    blocks = [
        [*_heading(each, width), *_lines([by_id[identity] for identity in each.ids if identity in by_id], width)]
        for each in spec.classes
    ]
    others: dict[str, list[Requirement]] = {}
    for requirement in spec.requirements:
        if not requirement.class_name:
            others.setdefault(f"Pack {requirement.pack}" if requirement.pack else "In no class", []).append(requirement)
    blocks += [[heading, *_lines(members, width)] for heading, members in others.items()]
    return "\n\n".join("\n".join(block) for block in blocks)


def _heading(each: ConformanceClass, width: int) -> list[str]:
    notes = [f"requires {', '.join(each.requires)}"] * bool(each.requires)
    notes += ["does not decide the verdict of a run"] * (not each.decides)
    return [wrap(f"{each.name}: ", each.claim + (f" ({'; '.join(notes)})" if notes else ""), 2, width)]


def _lines(requirements: Sequence[Requirement], width: int) -> list[str]:
    id_width = max((len(requirement.id) for requirement in requirements), default=0)
    indent = id_width + len("    SHOULD NOT  ")
    return [
        wrap(f"  {each.id:<{id_width}}  {each.level.value:<10}  ", each.text, indent, width) for each in requirements
    ]
