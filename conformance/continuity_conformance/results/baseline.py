"""The baseline: failures that are known, each with its reason and the last day on which it is accepted.

A file that a maintainer writes and reviews. It never changes a verdict: what it accepts is the gate's affair.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from continuity_spec import Document, InconsistentSpecError, Place, Requirement, read_yaml
from continuity_spec.errors import suggestion
from continuity_spec.load.schema import validate


@dataclass(frozen=True, slots=True)
class Known:
    """One entry. `until` is the last day that it holds on."""

    id: str
    reason: str
    until: date
    issue: str | None
    place: Place

    def expired(self, today: date) -> bool:
        return self.until < today


@dataclass(frozen=True, slots=True)
class Baseline:
    """All entries, by the requirement that they are about. `file` is empty where there is no baseline."""

    file: str = ""
    entries: Mapping[str, Known] = field(default_factory=dict)


def load_baseline(path: Path, requirements: Iterable[Requirement]) -> Baseline:
    """Read and check a file. Raises SpecError with file and line: for its form, an unknown id, an id said twice, a day that is none."""
    document = read_yaml(path)
    validate(document, "baseline")
    data: Any = document.data
    known = sorted(requirement.id for requirement in requirements)
    entries: dict[str, Known] = {}
    for index, row in enumerate(data):
        entry = _entry(document, index, row, known)
        if entry.id in entries:
            what = f"{entry.id} is already in line {entries[entry.id].place.line}"
            raise InconsistentSpecError(str(entry.place), what, "Keep one of the two.")
        entries[entry.id] = entry
    return Baseline(str(path), entries)


def _entry(document: Document, index: int, row: Mapping[str, str], known: Sequence[str]) -> Known:
    if row["id"] not in known:
        where = str(document.place((index, "id")))
        hint = suggestion(row["id"], known) if "-" in row["id"] else "Ids are listed by: continuity spec list"
        raise InconsistentSpecError(where, f"no requirement of this release has the id {row['id']}", hint)
    until = _day(document, index, row["until"])
    return Known(row["id"], " ".join(row["reason"].split()), until, row.get("issue"), document.place((index,)))


def _day(document: Document, index: int, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        where = str(document.place((index, "until")))
        raise InconsistentSpecError(where, f"there is no day {text}", "Write it as 2027-01-31.") from None
