"""badge.svg and badge.json: the verdict in one line, for a README.

The SVG is drawn here; the JSON is for the endpoint badge of shields.io. Both show how many requirements passed, never only a colour.
"""

import json
import unicodedata
import xml.etree.ElementTree as ET
from typing import Final

from continuity_conformance.core.verdicts import RunVerdict, Verdict
from continuity_conformance.results.recorded import Report
from continuity_conformance.results.tally import HEADS, total

_LABEL: Final = "session continuity"
_COLOURS: Final[dict[RunVerdict, tuple[str, str]]] = {
    RunVerdict.CONFORMANT: ("brightgreen", "#2a7d3f"),
    RunVerdict.NOT_CONFORMANT: ("red", "#b3181f"),
    RunVerdict.INCOMPLETE: ("yellow", "#8a6100"),
    RunVerdict.UNREACHABLE: ("lightgrey", "#6b7480"),
    RunVerdict.ERROR: ("lightgrey", "#6b7480"),
}
"""The colour's name at shields.io, and a colour with enough contrast for white text."""
_HEIGHT: Final = 20
_LETTER: Final = 6.2
_PAD: Final = 6


def message(report: Report) -> str:
    """The right half of the badge: release, the classes that are conformant or else the verdict, the counts of the release without packs, and the date."""
    claimed = [each.name for each in report.classes if each.verdict is RunVerdict.CONFORMANT]
    verdict = ", ".join(claimed) if claimed else report.verdict.value.replace("_", " ")
    numbers = total(result for result in report.results if not result.pack).counts
    shown = [Verdict.PASS, *([Verdict.FAIL] if numbers[Verdict.FAIL] else [])]
    shown += [Verdict.NOT_TESTED] if report.verdict is RunVerdict.INCOMPLETE else []
    counts = ", ".join(f"{numbers[verdict]} {HEADS[verdict]}" for verdict in shown)
    return f"{report.release} {verdict}: {counts}, {report.started[:10]}"


def as_json(report: Report) -> str:
    """The JSON for the endpoint badge of shields.io."""
    colour, _ = _COLOURS[report.verdict]
    badge = {"schemaVersion": 1, "label": _LABEL, "message": message(report), "color": colour}
    return json.dumps({**badge, "isError": report.verdict is not RunVerdict.CONFORMANT}, ensure_ascii=False) + "\n"


def as_svg(report: Report) -> str:
    text = message(report)
    left, right = _width(_LABEL), _width(text)
    svg = ET.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "width": str(left + right),
            "height": str(_HEIGHT),
            "role": "img",
            "aria-label": f"{_LABEL}: {text}",
        },
    )
    ET.SubElement(svg, "title").text = f"{_LABEL}: {text}"
    whole = {"height": str(_HEIGHT), "rx": "3"}
    ET.SubElement(svg, "rect", {"width": str(left + right), "fill": _COLOURS[report.verdict][1], **whole})
    ET.SubElement(svg, "path", {"d": f"M3 0h{left - 3}v{_HEIGHT}H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z", "fill": "#444b54"})
    _text(svg, _LABEL, 0, left)
    _text(svg, text, left, right)
    return ET.tostring(svg, encoding="unicode") + "\n"


def _text(svg: ET.Element, text: str, start: int, width: int) -> None:
    style = {
        "fill": "#fff",
        "font-family": "Verdana,DejaVu Sans,sans-serif",
        "font-size": "11",
        "text-anchor": "middle",
    }
    position = {"x": str(start + width / 2), "y": "14", "textLength": str(width - 2 * _PAD)}
    ET.SubElement(svg, "text", {**style, **position}).text = text


def _width(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return round((len(text) + wide) * _LETTER) + 2 * _PAD
