"""junit.xml: the report for the test views of CI servers.

xml.etree escapes all text; `visible` has replaced characters that XML does not allow when results.json was read. A failed SHOULD that does not count, and a
failure that the baseline accepts, are `skipped` with a message: a CI would fail the build on a `failure`.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Final

from continuity_conformance.core.text import cut, one_line
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.results.classes import class_of
from continuity_conformance.results.one_line import headline
from continuity_conformance.results.recorded import RecordedRequirement, Report
from continuity_conformance.results.tally import by_area

_MESSAGE: Final = 400
_TEXT: Final = 20_000


def render(report: Report) -> str:
    counts = _outcomes(report, list(report.rows))
    root = ET.Element("testsuites", {"name": "session continuity", "time": f"{report.seconds:.3f}", **counts})
    for tally in by_area(report.results):
        root.append(_suite(report, tally.name))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(report: Report, area: str) -> ET.Element:
    rows = [row for row in report.rows if row.result.area == area]
    seconds = sum(row.result.seconds for row in rows)
    attributes = {"name": area, "timestamp": report.started, "time": f"{seconds:.3f}", **_outcomes(report, rows)}
    suite = ET.Element("testsuite", attributes)
    _properties(suite, target=report.target.name, release=report.release, verdict=report.verdict.value)
    suite.extend(_case(report, row) for row in rows)
    return suite


def _outcomes(report: Report, rows: list[RecordedRequirement]) -> dict[str, str]:
    tags = [_outcome(report, row) for row in rows]
    return {
        "tests": str(len(rows)),
        "failures": str(tags.count("failure")),
        "errors": str(tags.count("error")),
        "skipped": str(tags.count("skipped")),
    }


def _outcome(report: Report, row: RecordedRequirement) -> str:
    """JUnit's tag for a verdict; empty for a pass."""
    match row.result.verdict:
        case Verdict.PASS:
            return ""
        case Verdict.ERROR:
            return "error"
        case Verdict.FAIL if not row.accepted and report.closes_gate(row):
            return "failure"
    return "skipped"


def _case(report: Report, row: RecordedRequirement) -> ET.Element:
    result = row.result
    case = ET.Element(
        "testcase",
        {
            "classname": f"continuity.{result.area}",
            "name": f"{result.id} {result.text}",
            "time": f"{result.seconds:.3f}",
        },
    )
    _properties(
        case,
        requirement=result.id,
        level=result.level.value,
        verdict=result.verdict.value,
        **{"class": class_of(result)},
    )
    case.extend(_outcome_element(report, row))
    return case


def _outcome_element(report: Report, row: RecordedRequirement) -> Iterator[ET.Element]:
    tag = _outcome(report, row)
    if tag:
        message = f"{_standing(row, tag)}{headline(row.result)}"
        element = ET.Element(tag, {"message": cut(one_line(message), _MESSAGE)})
        if tag != "skipped":
            element.set("type", row.result.verdict.value)
        element.text = cut(row.result.failure or row.result.reason, _TEXT)
        yield element


def _standing(row: RecordedRequirement, tag: str) -> str:
    if row.accepted and row.known is not None:
        return f"known until {row.known.until} ({row.known.reason}): "
    return "warned: " if row.result.verdict is Verdict.FAIL and tag == "skipped" else ""


def _properties(element: ET.Element, **values: str) -> None:
    holder = ET.SubElement(element, "properties")
    for name, value in values.items():
        ET.SubElement(holder, "property", {"name": name, "value": value})
