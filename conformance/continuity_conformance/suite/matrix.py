"""The kill matrix: which requirement fails on which defect of the bundled server, at which step and expectation. And the same for people.

The data are measured (`make matrix`) and come along with the package. Text here is at most as wide as asked for.
"""

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from continuity_conformance.suite.defects import Defect
from continuity_spec import Requirement

FILE: Final = Path(__file__).with_name("matrix.json")
Row = Mapping[str, str]
"""The requirements that fail on one defect, each with where it shows first; or the defects that one requirement catches, likewise."""
Matrix = Mapping[str, Row]


def published() -> dict[str, dict[str, str]]:
    """The matrix that comes along: for each defect the requirements that fail on it."""
    data: dict[str, dict[str, str]] = json.loads(FILE.read_text(encoding="utf-8"))
    return data


def transposed(matrix: Matrix, requirements: Iterable[Requirement]) -> dict[str, dict[str, str]]:
    """For each requirement, in the order of the spec, the defects that it catches."""
    return {
        requirement.id: {defect: row[requirement.id] for defect, row in matrix.items() if requirement.id in row}
        for requirement in requirements
    }


def made_for(defect: str, requirements: Iterable[Requirement]) -> list[str]:
    """The requirements that a defect was made to fail."""
    return [requirement.id for requirement in requirements if defect in requirement.refuted_by]


def by_defect(
    matrix: Matrix, defects: Mapping[str, Defect], requirements: Sequence[Requirement], width: int
) -> Iterator[str]:
    """A block a defect: what is broken, and what fails on it. A star marks what it was made for."""
    yield "* made for that defect"
    for name, defect in defects.items():
        yield from ("", name, *wrapped("  ", defect.text, width))
        yield from cells(matrix.get(name), made_for(name, requirements), width)


def by_requirement(matrix: Matrix, requirements: Sequence[Requirement], width: int) -> Iterator[str]:
    """A block a requirement: what it demands, and which defects it catches. A star marks those that were made for it."""
    yield "* made for that requirement"
    for requirement in requirements:
        caught = transposed(matrix, [requirement])[requirement.id]
        yield from ("", *wrapped(f"{requirement.id}  ", requirement.text, width))
        yield from cells(caught, requirement.refuted_by, width)


def cells(row: Row | None, made: Sequence[str], width: int) -> Iterator[str]:
    """A line or more for each cell of a row: those made for it first. No row at all was not measured yet."""
    if not row:
        yield "    not measured yet (make matrix)" if row is None else "    nothing"
        return
    column = max(map(len, row))
    for name in sorted(row, key=lambda name: name not in made):
        yield from wrapped(f"  {'*' if name in made else ' '} {name:<{column}}  ", row[name], width)


def described(defect: Defect, row: Row | None, made: Sequence[str], width: int) -> Iterator[str]:
    """Everything about one defect: what is broken, where that happened, how to start it, what fails on it."""
    options = "".join(f" --option {name}={value}" for name, value in defect.under.items())
    facts = {
        "issue": defect.issue or "",
        "needs": ", ".join(f"{name}={value}" for name, value in defect.under.items()),
        "start it": f"continuity serve --defect {defect.name}{options}",
        "check it": f'CONTINUITY_REFERENCE="--defect {defect.name}{options}" continuity check',
    }
    yield from (defect.name, *wrapped("  ", defect.text, width))
    yield from (f"  {name:<10}{text}" for name, text in facts.items() if text)
    yield from ("", "  what fails on it (* made for it):", *cells(row, made, width))


def wrapped(lead: str, text: str, width: int) -> list[str]:
    indent = " " * min(len(lead), width // 2)
    return textwrap.wrap(text, width, initial_indent=lead, subsequent_indent=indent, break_on_hyphens=False)
