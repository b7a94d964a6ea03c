"""The baseline: known failures, and known gaps (`accepts: untested`), each with a reason and the last day on which it is accepted.

A maintainer writes and reviews the file. It never changes a verdict; only the gate reads it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal

import msgspec

from continuity_conformance.core.verdicts import Verdict
from continuity_spec import Document, InconsistentSpecError, Place, Requirement, read_yaml
from continuity_spec.errors import suggestion
from continuity_spec.load.schema import validate


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """One entry. `until` is the last day on which it is valid."""

    id: str
    reason: str
    until: date
    issue: str | None
    place: Place
    accepts: Literal["failure", "untested"] = "failure"

    def covers(self, verdict: Verdict) -> bool:
        """Whether this verdict is what the entry accepts."""
        return verdict is (Verdict.NOT_TESTED if self.accepts == "untested" else Verdict.FAIL)

    def expired(self, today: date) -> bool:
        return self.until < today


@dataclass(frozen=True, slots=True)
class Baseline:
    """All entries, by the id of their requirement. `file` is empty where there is no baseline."""

    file: str = ""
    entries: Mapping[str, KnownFailure] = field(default_factory=dict)


def load_baseline(path: Path, requirements: Iterable[Requirement]) -> Baseline:
    """Read and check a file. Raises SpecError with file and line for a wrong form, an unknown id, a repeated id or an impossible date."""
    document = read_yaml(path)
    validate(document, "baseline")
    data: Any = document.data
    ids = sorted(requirement.id for requirement in requirements)
    entries: dict[str, KnownFailure] = {}
    for index, row in enumerate(data):
        entry = _entry(document, index, row, ids)
        if entry.id in entries:
            what = f"{entry.id} is already in line {entries[entry.id].place.line}"
            raise InconsistentSpecError(str(entry.place), what, "Keep one of the two.")
        entries[entry.id] = entry
    return Baseline(str(path), entries)


def _entry(document: Document, index: int, row: Mapping[str, str], ids: Sequence[str]) -> KnownFailure:
    _check_id(document, index, row["id"], ids)
    fields = {"issue": None, **row, "reason": " ".join(row["reason"].split()), "place": document.place((index,))}
    try:
        return msgspec.convert(fields, KnownFailure)
    except msgspec.ValidationError:  # the schema has checked the form of everything; a 30th of February has it too
        where = str(document.place((index, "until")))
        raise InconsistentSpecError(where, f"there is no day {row['until']}", "Write it as 2027-01-31.") from None


def _check_id(document: Document, index: int, id_: str, ids: Sequence[str]) -> None:
    if id_ not in ids:
        where = str(document.place((index, "id")))
        hint = suggestion(id_, ids) if "-" in id_ else "Ids are listed by: continuity spec list"
        raise InconsistentSpecError(where, f"no requirement of this release has the id {id_}", hint)
