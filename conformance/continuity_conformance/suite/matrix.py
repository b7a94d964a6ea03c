"""The kill matrix: which requirement fails on which defect of the bundled server, and at which step and expectation; also as text.

The data are measured by `make matrix` and are part of the package.
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
"""The requirements that fail on one defect, each with the place of its first failure; or, transposed, the defects that one requirement catches."""
Matrix = Mapping[str, Row]


def published() -> dict[str, dict[str, str]]:
    """The matrix in the package: for each defect the requirements that fail on it."""
    data: dict[str, dict[str, str]] = json.loads(FILE.read_text(encoding="utf-8"))
    return data


def transposed(matrix: Matrix, requirements: Iterable[Requirement]) -> dict[str, dict[str, str]]:
    """For each of these requirements the defects that it catches."""
    return {
        requirement.id: {defect: row[requirement.id] for defect, row in matrix.items() if requirement.id in row}
        for requirement in requirements
    }


def made_for(defect: str, requirements: Iterable[Requirement]) -> list[str]:
    """The requirements that the defect was written for: those whose `refuted_by` names it."""
    return [requirement.id for requirement in requirements if defect in requirement.refuted_by]


def by_defect(
    matrix: Matrix, defects: Mapping[str, Defect], requirements: Sequence[Requirement], width: int
) -> Iterator[str]:
    """One block of text for each defect: what is broken, and which requirements fail. A star marks those that the defect was made for."""
    yield "* made for that defect"
    for name, defect in defects.items():
        yield from ("", name, *wrapped("  ", defect.text, width))
        yield from cells(matrix.get(name), made_for(name, requirements), width)


def by_requirement(matrix: Matrix, requirements: Sequence[Requirement], width: int) -> Iterator[str]:
    """One block of text for each requirement: its text, and which defects it catches. A star marks the defects that were made for it."""
    yield "* made for that requirement"
    for requirement in requirements:
        caught = transposed(matrix, [requirement])[requirement.id]
        yield from ("", *wrapped(f"{requirement.id}  ", requirement.text, width))
        yield from cells(caught, requirement.refuted_by, width)


def cells(row: Row | None, starred: Sequence[str], width: int) -> Iterator[str]:
    """The lines for the cells of a row, with the names in `starred` first. A row that is None is not measured yet."""
    if not row:
        yield "    not measured yet (make matrix)" if row is None else "    nothing"
        return
    column = max(map(len, row))
    for name in sorted(row, key=lambda name: name not in starred):
        yield from wrapped(f"  {'*' if name in starred else ' '} {name:<{column}}  ", row[name], width)


def described(defect: Defect, row: Row | None, starred: Sequence[str], width: int) -> Iterator[str]:
    """Everything about one defect: what is broken, the issue it comes from, how to start a server with it, and what fails on it."""
    options = "".join(f" --option {name}={value}" for name, value in defect.under.items())
    facts = {
        "issue": defect.issue or "",
        "needs": ", ".join(f"{name}={value}" for name, value in defect.under.items()),
        "start it": f"continuity serve --defect {defect.name}{options}",
        "check it": f'CONTINUITY_REFERENCE="--defect {defect.name}{options}" continuity check',
    }
    yield from (defect.name, *wrapped("  ", defect.text, width))
    yield from (f"  {name:<10}{text}" for name, text in facts.items() if text)
    yield from ("", "  what fails on it (* made for it):", *cells(row, starred, width))


def wrapped(lead: str, text: str, width: int) -> list[str]:
    indent = " " * min(len(lead), width // 2)
    return textwrap.wrap(text, width, initial_indent=lead, subsequent_indent=indent, break_on_hyphens=False)
