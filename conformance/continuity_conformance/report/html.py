"""report.html: one file for the browser, with everything in it.

It is rendered whole, here: the page's script only filters, opens and copies, so that nothing a server said ever becomes markup or code. Evidence is fitted
into a room, most telling first, so that the page stays small however much was said.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from continuity_conformance.core.text import cut, one_line, without_middle
from continuity_conformance.core.verdicts import Evidence, Verdict, by_weight
from continuity_conformance.http.curl import curl
from continuity_conformance.report.conversation import Beat, Event, conversation
from continuity_conformance.report.page import MARKS, ROOM, page, template
from continuity_conformance.report.reproduce import again
from continuity_conformance.results.one_line import headline
from continuity_conformance.results.recorded import RecordedRequirement, RecordedScenario, Report
from continuity_conformance.results.tally import HEADS, by_area, by_level, columns, total
from continuity_conformance.results.transcript import is_stream, relevant_headers

_ROOM_OF_ONE: Final = 24_000
_ROOM_FOR_THE_FIRST: Final = 8_500
_HEADLINE: Final = 220
_TEXT: Final = 500


@dataclass(frozen=True, slots=True)
class Detail:
    """What is shown beside the picture: of how many exchanges the whole text, how many characters of a body, and a curl."""

    exchanges: int
    body: int
    curl: bool


_BARE: Final = (Detail(0, 0, curl=True), Detail(0, 0, curl=False))
_DETAILS: Final = (Detail(4, 1500, curl=True), Detail(2, 900, curl=True), Detail(1, 500, curl=True), *_BARE)
"""From all that there is to the bare picture."""


@dataclass(frozen=True, slots=True)
class Part:
    """A scenario: its steps, and what is shown of how it went."""

    scenario: RecordedScenario
    shown: tuple[Markup, ...]
    outcomes: tuple[Evidence, ...]


def render(report: Report) -> str:
    """The page."""
    room = min(_ROOM_OF_ONE, ROOM // max(len(report.rows), 1))
    return page(
        "report.html.j2",
        "report.js",
        report=report,
        areas=by_area(report.results),
        levels=by_level(report.results),
        total=total(report.results),
        columns=columns(report.results),
        heads=HEADS,
        entries=[_entry(row, report, room) for row in report.rows],
        headline=lambda row: cut(one_line(headline(row.result)), _HEADLINE),
        again=lambda row: again(row.result.id, report.again),
    )


def _entry(row: RecordedRequirement, report: Report, room: int) -> dict[str, object]:
    parts = list(_parts(row, report, room))
    return {"row": row, "parts": parts, "mark": MARKS[row.result.verdict], "standing": _standing(row, report)}


def _standing(row: RecordedRequirement, report: Report) -> str:
    if row.accepted:
        return "known"
    counts = row.result.verdict is not Verdict.FAIL or report.gate.counts_for(row.result.level)
    return "" if counts else "warns"


def _parts(row: RecordedRequirement, report: Report, room: int) -> Iterator[Part]:
    """The scenarios, what went worst first: it is looked for, and it is given the room."""
    shown: dict[int, Markup] = {}
    for evidence in by_weight(row.result.evidence):
        # However little room there is, the first is told.
        markup = _fitted(evidence, row, report, room if shown else max(room, _ROOM_FOR_THE_FIRST))
        room -= len(markup.encode())
        shown[id(evidence)] = markup
    known = {scenario.name: scenario for scenario in row.scenarios}
    for name in dict.fromkeys((*(each.scenario for each in by_weight(row.result.evidence)), *known)):
        own = tuple(each for each in row.result.evidence if each.scenario == name)
        told = tuple(shown[id(each)] for each in own if shown[id(each)])
        yield Part(known.get(name, RecordedScenario(name)), told, own)


def _fitted(evidence: Evidence, row: RecordedRequirement, report: Report, room: int) -> Markup:
    """The evidence with the most detail that there is room for; nothing where there is none."""
    for detail in (*(_BARE if evidence.outcome is Verdict.PASS else _DETAILS), None):
        markup = _evidence(evidence, row, report, detail)
        if len(markup.encode()) <= room:
            return markup
    return Markup()


def _evidence(evidence: Evidence, row: RecordedRequirement, report: Report, detail: Detail | None) -> Markup:
    steps = next((each.steps for each in row.scenarios if each.name == evidence.scenario), ())
    beats = conversation(evidence, steps, report.target.header)
    said = [beat for beat in beats if isinstance(beat, Beat)]
    whole = said[-detail.exchanges :] if detail is not None and detail.exchanges else []
    last = curl(said[-1].exchange) if said and detail is not None and detail.curl else None
    return Markup(  # noqa: S704 - made by the template, which escapes
        template("evidence.html.j2").render(
            evidence=evidence,
            cut=lambda text: cut(text, _TEXT),
            beats=beats if detail is not None else [],
            left_out=detail is None and bool(evidence.exchanges),
            failed_step=evidence.step.partition(" ")[0],
            is_event=lambda beat: isinstance(beat, Event),
            whole={id(beat): _whole(beat.exchange, evidence.expected, detail.body) for beat in whole}
            if detail is not None
            else {},
            id=id,
            curl=last,
        )
    )


def _whole(exchange: Mapping[str, Any], about: str, body: int) -> str:
    """An exchange as text: lines of headers that matter, and bodies."""
    request, answer = exchange["request"], exchange["answer"]
    lines = [f"{request['method']} {request['url']}", *_message(request, about, body)]
    lines += ["", str(answer["status"]), *_message(answer, about, body)] if answer else []
    return "\n".join(lines)


def _message(message: Mapping[str, Any], about: str, body: int) -> Iterator[str]:
    yield from (cut(f"{name}: {value}", body // 4) for name, value in relevant_headers(message["headers"], about)[:20])
    text = str(message["body"])
    yield without_middle(text, body) if is_stream(message) else cut(text, body)
