"""report.html: the whole report in one file for the browser.

All markup is rendered here. The script of the page only filters, opens and copies, so text from a server never becomes markup or code. The size of the page is
limited: evidence is shown with as much detail as fits, the worst outcomes first.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from continuity_conformance.core.text import cut, one_line, without_middle
from continuity_conformance.core.verdicts import Evidence, Verdict, by_weight
from continuity_conformance.http.curl import curl
from continuity_conformance.report.conversation import ExchangeEntry, InterventionEntry, conversation
from continuity_conformance.report.page import EVIDENCE_BYTES, MARKS, page, template
from continuity_conformance.report.reproduce import again
from continuity_conformance.results import cause_text
from continuity_conformance.results.classes import class_of
from continuity_conformance.results.one_line import headline
from continuity_conformance.results.recorded import RecordedRequirement, RecordedScenario, Report
from continuity_conformance.results.tally import HEADS, by_area, by_level, columns, total
from continuity_conformance.results.transcript import is_stream, relevant_headers

_BYTES_OF_ONE: Final = 24_000
_BYTES_OF_THE_FIRST: Final = 7_200
_HEADLINE: Final = 220
_TEXT: Final = 500
_OUTPUT: Final = 400


@dataclass(frozen=True, slots=True)
class Detail:
    """What is shown beside the diagram: how many exchanges in full, how many characters of a body, and whether a curl command."""

    exchanges: int
    body: int
    curl: bool


_DETAILS: Final = (
    Detail(4, 1500, curl=True),
    Detail(2, 900, curl=True),
    Detail(1, 500, curl=True),
    Detail(0, 0, curl=True),
    Detail(0, 0, curl=False),
)
"""From the most detail to the diagram alone."""


@dataclass(frozen=True, slots=True)
class Part:
    """A scenario: its steps, the rendered evidence, and all evidence."""

    scenario: RecordedScenario
    shown: tuple[Markup, ...]
    outcomes: tuple[Evidence, ...]

    @property
    def left_out(self) -> int:
        """How many that did not pass are not shown, because the page would be too long."""
        return sum(each.outcome is not Verdict.PASS for each in self.outcomes) - len(self.shown)


def render(report: Report) -> str:
    """The HTML of the page."""
    size = min(_BYTES_OF_ONE, EVIDENCE_BYTES // max(len(report.rows), 1))
    return page(
        "report.html.j2",
        "report.js",
        causes=cause_text,
        failures=len(report.with_verdict(Verdict.FAIL)),
        areas=by_area(report.results),
        levels=by_level(report.results),
        total=total(report.results),
        columns=columns(report.results),
        heads=HEADS,
        entries=[_entry(row, report, size) for row in report.rows],
        headline=head_line,
        **_common(report),
    )


def head_line(row: RecordedRequirement) -> str:
    """Why it did not pass, in one line."""
    return cut(one_line(headline(row.result)), _HEADLINE)


def requirement(row: RecordedRequirement, report: Report) -> Markup:
    """One requirement as the page shows it when its row is open, with all detail."""
    entry = _entry(row, report, EVIDENCE_BYTES)
    text = template("requirement.html.j2").render(
        row=row, result=row.result, entry=entry, marks=MARKS, **_common(report)
    )
    return Markup(text)  # noqa: S704 - made by the template, which escapes


def _common(report: Report) -> dict[str, object]:
    """What the template of a requirement needs, on a page of its own and in the report."""
    return {"report": report, "class_of": class_of, "again": lambda row: again(row.result.id, report.again)}


def _entry(row: RecordedRequirement, report: Report, size: int) -> dict[str, object]:
    parts = list(_parts(row, report, size))
    return {"row": row, "parts": parts, "mark": MARKS[row.result.verdict], "standing": _standing(row, report)}


def _standing(row: RecordedRequirement, report: Report) -> str:
    if row.accepted:
        return "known"
    counts = row.result.verdict is not Verdict.FAIL or report.closes_gate(row)
    return "" if counts else "warns"


def _parts(row: RecordedRequirement, report: Report, size: int) -> Iterator[Part]:
    """The scenarios, the worst outcome first. They share `size` bytes in this order."""
    shown: dict[int, Markup] = {}
    for evidence in by_weight(row.result.evidence):
        # The first one is shown even where too many requirements leave hardly any bytes for each.
        markup = _fitted(evidence, row, report, size if shown else max(size, _BYTES_OF_THE_FIRST))
        size -= len(markup.encode())
        shown[id(evidence)] = markup
    known = {scenario.name: scenario for scenario in row.scenarios}
    for name in dict.fromkeys((*(each.scenario for each in by_weight(row.result.evidence)), *known)):
        own = tuple(each for each in row.result.evidence if each.scenario == name)
        rendered = tuple(shown[id(each)] for each in own if shown[id(each)])
        yield Part(known.get(name, RecordedScenario(name)), rendered, own)


def _fitted(evidence: Evidence, row: RecordedRequirement, report: Report, size: int) -> Markup:
    """The evidence with the most detail that fits into `size` bytes; empty where nothing fits, or for what passed: its steps say it all."""
    if evidence.outcome is Verdict.PASS:
        return Markup()
    for detail in (*_DETAILS, None):
        markup = _evidence(evidence, row, report, detail)
        if len(markup.encode()) <= size:
            return markup
    return Markup()


def _evidence(evidence: Evidence, row: RecordedRequirement, report: Report, detail: Detail | None) -> Markup:
    steps = next((each.steps for each in row.scenarios if each.name == evidence.scenario), ())
    entries = conversation(evidence, steps, report.target.header)
    exchanges = [entry for entry in entries if isinstance(entry, ExchangeEntry)]
    in_full = exchanges[-detail.exchanges :] if detail is not None and detail.exchanges else []
    last = curl(exchanges[-1].exchange) if exchanges and detail is not None and detail.curl else None
    return Markup(  # noqa: S704 - made by the template, which escapes
        template("evidence.html.j2").render(
            evidence=evidence,
            output=evidence.output[-_OUTPUT:] if detail is not None and detail.exchanges else "",
            cut=lambda text: cut(text, _TEXT),
            entries=entries if detail is not None else [],
            left_out=detail is None and bool(evidence.exchanges),
            failed_step=evidence.step.partition(" ")[0],
            is_intervention=lambda entry: isinstance(entry, InterventionEntry),
            whole={id(entry): _whole(entry.exchange, evidence.expected, detail.body) for entry in in_full}
            if detail is not None
            else {},
            id=id,
            curl=last,
        )
    )


def _whole(exchange: Mapping[str, Any], expected: str, body: int) -> str:
    """An exchange as text: relevant headers, and bodies."""
    request, answer = exchange["request"], exchange["answer"]
    lines = [f"{request['method']} {request['url']}", *_message(request, expected, body)]
    lines += ["", str(answer["status"]), *_message(answer, expected, body)] if answer else []
    return "\n".join(lines)


def _message(message: Mapping[str, Any], expected: str, body: int) -> Iterator[str]:
    yield from (
        cut(f"{name}: {value}", body // 4) for name, value in relevant_headers(message["headers"], expected)[:20]
    )
    text = str(message["body"])
    yield without_middle(text, body) if is_stream(message) else cut(text, body)
