"""`continuity baseline`: a first file of known failures, made from the results of a run."""

import argparse
import json
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from continuity_conformance.core.errors import UsageError
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.results.read import read
from continuity_conformance.results.recorded import RecordedRequirement, Report

_DAYS: Final = 90
_REASON_LENGTH: Final = 160


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, metavar="RESULTS", help="the results.json of a run")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write to this file, which must not exist (default: stdout)"
    )
    parser.add_argument(
        "--reason", metavar="TEXT", help="why they fail (default: what was expected and what was found)"
    )
    parser.add_argument(
        "--untested", action="store_true", help="also accept each requirement that counts and could not be tested"
    )
    parser.add_argument(
        "--until",
        type=_date,
        metavar="DATE",
        help=f"the last day on which they are accepted, as 2027-01-31 (default: {_DAYS} days from now)",
    )


def run(options: argparse.Namespace) -> int:
    until = options.until or datetime.now(UTC).date() + timedelta(days=_DAYS)
    made = lines(read(options.results), until, options.reason, untested=options.untested)
    text = "".join(f"{line}\n" for line in made)
    if options.output is None:
        sys.stdout.write(text)
    else:
        _write(options.output, text)
    return 0


def lines(report: Report, until: date, reason: str | None, *, untested: bool = False) -> Iterator[str]:
    """Every failure that counts, and with `untested` every gap that counts. Entries that the run's own baseline accepted keep their reason and date."""
    yield f"# Known failures of {' '.join(report.target.name.split())}, {report.started[:10]}, release {report.release}."
    yield "# Give each its true reason and an issue. An entry that passes again, or is past its date, fails the gate."
    gaps = [row for row in report.rows if row.accepted_gap or (untested and _is_gap(row))]
    rows = [row for row in report.rows if row in report.failed or row in report.accepted or row in gaps]
    if not rows:
        yield "[]"
    for row in rows:
        yield from _entry(row, until, reason)


def _is_gap(row: RecordedRequirement) -> bool:
    counts = row.decides and row.result.level.binding and not row.manual
    return counts and row.result.verdict is Verdict.NOT_TESTED


def _entry(row: RecordedRequirement, until: date, reason: str | None) -> Iterator[str]:
    known = row.known
    yield f"- id: {row.result.id}"
    yield f"  reason: {_quoted(known.reason if known else reason or row.result.reason)}"
    yield f"  until: {known.until if known and (row.accepted or row.accepted_gap) else until.isoformat()}"
    if row.result.verdict is Verdict.NOT_TESTED:
        yield "  accepts: untested"
    if known and known.issue:
        yield f"  issue: {_quoted(known.issue)}"


def _quoted(text: str) -> str:
    """A JSON string, which is a YAML string whatever it contains."""
    line = " ".join(text.split())
    return json.dumps(line if len(line) <= _REASON_LENGTH else f"{line[:_REASON_LENGTH]}…", ensure_ascii=False)


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(
            "this file exists already, and writing would destroy what people wrote in it.",
            where=str(path),
            do="Name another, or leave out --output and compare.",
        ) from None
    except OSError as error:
        raise UsageError(f"it cannot be written ({error.strerror}).", where=str(path), do="Name another.") from None


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"there is no day {text}; write it as 2027-01-31") from None
