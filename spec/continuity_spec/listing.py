"""The spec for people: as rows, as a table, one requirement on one screen, and what lint says of files.

Pure functions from the spec to data and text. They print nothing and know no command line.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from continuity_spec.errors import SpecError
from continuity_spec.flow import flow
from continuity_spec.lint import lint_requirements
from continuity_spec.loader import load_requirements
from continuity_spec.schema import violations
from continuity_spec.yaml_source import read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from continuity_spec.model import Requirement, Scenario, Spec, Step

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
    }


def as_table(spec: Spec, width: int) -> str:
    """Give one line or more for each requirement: id, level, text."""
    id_width = max((len(requirement.id) for requirement in spec.requirements), default=0)
    indent = id_width + len("  SHOULD NOT  ")
    lines = [
        _wrapped(f"{entry.id:<{id_width}}  {entry.level.value:<10}  ", entry.text, indent, width)
        for entry in spec.requirements
    ]
    return "\n".join(lines)


def show(spec: Spec, wanted: str, width: int) -> str:
    """Give everything about one requirement: text, reason, origin, steps as they are written, defects."""
    requirement = spec.requirement(wanted)
    facts = [
        ("why", requirement.why),
        ("origin", ", ".join(requirement.origin)),
        ("applies", _when(requirement.when)),
        ("needs", ", ".join(sorted(requirement.needs))),
        ("refuted by", ", ".join(requirement.refuted_by)),
        ("written in", str(requirement.place)),
    ]
    lines = [_wrapped(f"{requirement.id} ({requirement.level.value})  ", requirement.text, 2, width), ""]
    lines += [_wrapped(f"  {name:<11} ", text, 14, width) for name, text in facts if text]
    return "\n".join([*lines, "", *_checking(requirement, width)])


def _checking(requirement: Requirement, width: int) -> Iterator[str]:
    if requirement.manual is not None:
        yield _wrapped("  A reviewer answers: ", requirement.manual, 4, width)
    if requirement.check is not None:
        yield f"  Checked by the Python check {requirement.check}."
    if requirement.always is not None:
        after = ", ".join(sorted(requirement.always.after))
        yield f"  On every answer ({flow(requirement.always.answered)}) to {after}:"
        yield _wrapped("    expect  ", flow(requirement.always.expect)[1:-1], 12, width)
    for scenario in requirement.scenarios:
        yield from _scenario(scenario, requirement, width)


def _scenario(scenario: Scenario, requirement: Requirement, width: int) -> Iterator[str]:
    if scenario.name:
        own = {option: values for option, values in scenario.when.items() if option not in requirement.when}
        yield f"  {scenario.name}{f' (only {_when(own)})' if own else ''}"
    if scenario.examples:
        yield f"    for each of {len(scenario.examples)} examples{f' in {scenario.vectors}' if scenario.vectors else ''}"
    if scenario.copies > 1:
        yield f"    {scenario.copies} times side by side"
    for number, step in enumerate(scenario.steps, 1):
        yield from _step(step, f"{number:>4}  ", width)


def _step(step: Step, lead: str, width: int) -> Iterator[str]:
    if step.together:
        yield f"{lead}together"
        for part in step.together:
            yield from _step(part, " " * len(lead) + "- ", width)
        return
    indent = len(lead) + 2
    yield _wrapped(lead, step.text, indent, width)
    if step.expect:
        yield _wrapped(" " * indent + "expect  ", flow(step.expect)[1:-1], indent + 8, width)


def _when(when: Mapping[str, tuple[str, ...]]) -> str:
    return ", ".join(f"{option}={' or '.join(values)}" for option, values in when.items())


def _wrapped(lead: str, text: str, indent: int, width: int) -> str:
    return textwrap.fill(
        text,
        width=max(width, _MIN_WIDTH),
        initial_indent=lead,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


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
