"""The kill matrix as a page of the docs, made from the published data, the server's sentences and the spec. `python tools/matrix/page.py` writes it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from continuity_conformance.diagnose.signatures import signatures
from continuity_conformance.diagnose.symptoms import Symptoms
from continuity_conformance.suite.defects import ListedDefect, defects
from continuity_conformance.suite.matrix import Matrix, made_for, published, transposed
from continuity_spec import Requirement, load_spec

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "matrix.md"
_OPENING = """\
# The kill matrix

A check that cannot fail is no check. So the bundled server can be started with one rule broken (`continuity serve --defect NAME`), and the suite is played
on every such defect: {defects} defects, {cells} failures, each at the step and the expectation that show it first. Every requirement that runs is failed by the
defects made for it, and by many that were not.

This page is generated (`make matrix`) from [the measured data](../../conformance/continuity_conformance/suite/matrix.json), which `continuity defects --matrix`
prints with every cell. `continuity defects NAME` tells all about one defect, and `continuity spec show ID` about one requirement. On each defect the areas
that it was made for were played, and of the costly requirements those made for it; an empty cell elsewhere was not played.

## What fails on each defect
"""
_REQUIREMENTS = """
## What each requirement catches

Defects made for the requirement first, in bold; then how many others it catches.
"""
_TWINS = """
## Defects that the diagnosis cannot tell apart

Their [signatures](../explanation/diagnosis.md) are the same: all areas were played on each of them, and the same requirements fail at the same steps in the same way.
"""


def page(matrix: Matrix, known: Mapping[str, ListedDefect], requirements: Sequence[Requirement]) -> str:
    """The whole page."""
    areas = list(dict.fromkeys(requirement.area for requirement in requirements))
    homes = {name: _home(name, requirements) for name in matrix}
    lines = [_OPENING.format(defects=len(matrix), cells=sum(map(len, matrix.values())))]
    for area in areas:
        lines += [
            f"\n### {area}\n",
            "| defect | what is broken | fails what was made for it | and |",
            "|---|---|---|---|",
        ]
        lines += [_defect_row(known[name], matrix[name], requirements) for name, home in homes.items() if home == area]
    lines += [_REQUIREMENTS, *_by_requirement(matrix, requirements)]
    lines += [_TWINS, *_twins(signatures())]
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def _home(name: str, requirements: Sequence[Requirement]) -> str:
    """The area of the first requirement that a defect was made for."""
    return next((requirement.area for requirement in requirements if name in requirement.refuted_by), "")


def _defect_row(defect: ListedDefect, row: Mapping[str, str], requirements: Sequence[Requirement]) -> str:
    made = made_for(defect.name, requirements)
    under = "".join(f" ({option}={value})" for option, value in defect.under.items())
    issue = f" ({defect.issue})" if defect.issue else ""
    shown = "<br>".join(f"{identity}: {row[identity]}" for identity in made if identity in row)
    others = ", ".join(identity for identity in row if identity not in made)
    return f"| `{defect.name}` | {_cell(f'{defect.text}{under}{issue}')} | {_cell(shown)} | {others} |"


def _by_requirement(matrix: Matrix, requirements: Sequence[Requirement]) -> Iterator[str]:
    caught = transposed(matrix, requirements)
    yield from ("| requirement | catches |", "|---|---|")
    for requirement in requirements:
        own = [name for name in requirement.refuted_by if name in caught[requirement.id]]
        others = len(caught[requirement.id]) - len(own)
        nothing = "a reviewer decides" if requirement.manual else "not measured yet"
        names = ", ".join(f"**`{name}`**" for name in own)
        yield f"| {requirement.id} | {names or nothing}{f', and {others} more' if others else ''} |"


def _twins(known: Mapping[str, Symptoms]) -> Iterator[str]:
    """A line for each group of defects with the same signature."""
    groups: dict[str, list[str]] = {}
    for name, each in known.items():
        groups.setdefault(
            repr(sorted((identity, sorted(places)) for identity, places in each.fails.items())), []
        ).append(name)
    same = [names for names in groups.values() if len(names) > 1]
    yield from (f"- {', '.join(f'`{name}`' for name in names)}" for names in same)
    if not same:
        yield "There are none."


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def write_page() -> None:
    PAGE.write_text(page(published(), defects(), load_spec().requirements), encoding="utf-8")


if __name__ == "__main__":
    write_page()
