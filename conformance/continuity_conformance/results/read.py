"""Read results.json: the only source of every report.

The JSON Schema `results.schema.json` decides whether a file can be read, and explains why not. msgspec then decodes the data into the types of `recorded`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from continuity_conformance.core.cause import Cause
from continuity_conformance.core.errors import UsageError
from continuity_conformance.core.text import one_line, visible
from continuity_conformance.core.verdicts import Verdict, counts
from continuity_conformance.diagnose.causes import cause_of_an_earlier_run, causes
from continuity_conformance.results.recorded import Report
from continuity_conformance.results.shortened import completed, is_shortened
from continuity_spec import Document, load_spec
from continuity_spec.load.schema import violations


class UnreadableResultsError(UsageError):
    """The file is not a results.json that a report can be made from."""


def read(path: Path) -> Report:
    """Read the results in a file. Raises UnreadableResultsError."""
    data = _json(path)
    for violation in violations(Document(str(path), data, None), "results"):
        raise _unreadable(f"not results of a run: {one_line(visible(violation.what))}.", path)
    try:
        report = msgspec.convert(_completed(visible(data)), Report)
    except msgspec.ValidationError as error:
        raise _unreadable(f"not results of a run: {error}.", path) from None
    _check_counts(report, path)
    return report if "causes" in data else diagnosed(report)


def diagnosed(report: Report) -> Report:
    """The report with the causes that this kit finds."""
    return msgspec.structs.replace(report, causes=_causes(report))


def _causes(report: Report) -> tuple[Cause, ...]:
    if report.with_verdict(Verdict.FAIL) and not report.tells_kinds:
        return (cause_of_an_earlier_run(report.results),)
    return causes(completed(report) if is_shortened(report) else report.results)


def _json(path: Path) -> Any:
    # The standard library reads what the kit may have written, such as a lone surrogate; msgspec.json refuses it.
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _unreadable(f"the file cannot be read ({error.strerror}).", path) from None
    except (ValueError, RecursionError) as error:
        raise _unreadable(f"not JSON ({error}).", path) from None


def _check_counts(report: Report, path: Path) -> None:
    ids = {row.result.id for row in report.rows}
    if report.counts != counts(report.results) or len(ids) != len(report.rows):
        raise UnreadableResultsError(
            "the counts do not match the requirements.", where=str(path), do="Use the file as the run wrote it."
        )


def _unreadable(problem: str, path: Path) -> UnreadableResultsError:
    return UnreadableResultsError(problem, where=str(path), do="Name a results.json that a run has written.")


def _completed(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data with what an old file lacks, and with each requirement's result in a field of its own."""
    again = data.get("again") or {"target": data["target"]["url"], "profile": None}
    kinds = any("kinds" in evidence for each in data["requirements"] for evidence in each["evidence"])
    rows = [_with_result(each) for each in data["requirements"]]
    return {**data, "again": again, "tells_kinds": kinds, "requirements": rows}


def _with_result(requirement: Mapping[str, Any]) -> dict[str, Any]:
    failures = (each["failure"] for each in requirement["evidence"])
    derived = {"failure": next(filter(None, failures), ""), "pack": requirement.get("pack") or ""}
    derived |= {"class_name": _class_of(requirement), "blocked_by": requirement.get("blocked_by") or ""}
    return {"question": requirement["text"], **requirement, "result": {**requirement, **derived}}


def _class_of(requirement: Mapping[str, Any]) -> str:
    """The class of a requirement. An early kit did not write it."""
    if "class" in requirement:
        return requirement["class"] or ""
    return next((each.class_name for each in load_spec().requirements if each.id == requirement["id"]), "")
