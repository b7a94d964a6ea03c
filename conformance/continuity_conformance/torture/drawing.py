"""torture.html: each violation as a picture of its timeline. One file that works offline, made like the pages of a report."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from continuity_conformance.core.errors import KitError
from continuity_conformance.core.text import cut, visible
from continuity_conformance.report.page import page
from continuity_conformance.torture.result import CampaignResult, Reported

FILE: Final = "torture.html"
LANES: Final = ("client", "target", "read back")
_ROW: Final = 34
_TOP: Final = 46
_LANE_WIDTH: Final = 110
_LEFT: Final = 90
_TEXT: Final = 130


@dataclass(frozen=True, slots=True)
class Dot:
    """An event in the picture: its place, and its words beside it."""

    x: int
    y: int
    time: str
    says: str
    lane: str
    wrong: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """A violation with the places of its events. Time goes down; distances are not to scale."""

    violation: Reported
    dots: tuple[Dot, ...]
    lanes: tuple[tuple[str, int], ...]
    height: int
    text_at: int


def picture(violation: Reported) -> Picture:
    places = {lane: _LEFT + k * _LANE_WIDTH for k, lane in enumerate(LANES)}
    dots = [
        Dot(
            places[entry.lane],
            _TOP + k * _ROW,
            f"{entry.at:.3f} s",
            cut(str(visible(entry.says)), _TEXT),
            entry.lane,
            entry.wrong,
        )
        for k, entry in enumerate(violation.timeline)
    ]
    height = _TOP + max(len(dots), 1) * _ROW
    return Picture(violation, tuple(dots), tuple(places.items()), height, _LEFT + len(LANES) * _LANE_WIDTH - 60)


def write_page(result: CampaignResult, folder: Path) -> Path:
    """Write torture.html beside torture.json."""
    file = folder / FILE
    pictures = [picture(violation) for violation in result.violations if violation.timeline]
    html = page("torture.html.j2", None, result=result, pictures=pictures)
    try:
        file.write_text(html, encoding="utf-8")
    except OSError as error:
        raise KitError(
            f"The page cannot be written: {error.strerror}.", where=str(file), do="Name another folder with --report."
        ) from None
    return file
