"""A line chart with logarithmic axes as a small SVG: figures in, text out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Points = Sequence[tuple[float, float]]

_WIDTH: Final = 760
_HEIGHT: Final = 380
_LEFT: Final = 80
_RIGHT: Final = 190
_TOP: Final = 40
_BOTTOM: Final = 50
_COLOURS: Final = ("#0b6e4f", "#c84630", "#33658a", "#8a5a83", "#b07d12")


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: the powers of ten that it reaches from and to, and where it lies on the picture."""

    low: int
    high: int
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float) -> "Axis":
        low = math.floor(math.log10(min(values)))
        return cls(low, max(math.ceil(math.log10(max(values))), low + 1), start, end)

    def place(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[int]:
        return [10**power for power in range(self.low, self.high + 1)] if self.low >= 0 else []


def chart(title: str, across: str, upwards: str, lines: Mapping[str, Points]) -> str:
    points = [point for line in lines.values() for point in line]
    horizontal = Axis.over([x for x, _ in points], _LEFT, _WIDTH - _RIGHT)
    vertical = Axis.over([y for _, y in points], _HEIGHT - _BOTTOM, _TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<title>{title}</title><rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        _text(_LEFT, 22, title, "start", 14),
        *_grid(horizontal, vertical),
        _text((horizontal.start + horizontal.end) / 2, _HEIGHT - 12, across),
        f'<g transform="translate(16 {(_TOP + _HEIGHT - _BOTTOM) / 2}) rotate(-90)">{_text(0, 0, upwards)}</g>',
        *(
            part
            for number, (name, line) in enumerate(lines.items())
            for part in _line(number, name, [(horizontal.place(x), vertical.place(y)) for x, y in line])
        ),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _grid(horizontal: Axis, vertical: Axis) -> list[str]:
    down = [
        f'<path d="M{horizontal.place(tick):.1f} {vertical.end}V{vertical.start}" stroke="#ddd"/>'
        + _text(horizontal.place(tick), vertical.start + 18, f"{tick:,}")
        for tick in horizontal.ticks()
    ]
    across = [
        f'<path d="M{horizontal.start} {vertical.place(tick):.1f}H{horizontal.end}" stroke="#ddd"/>'
        + _text(horizontal.start - 6, vertical.place(tick) + 4, f"{tick:,}", "end")
        for tick in vertical.ticks()
    ]
    return [*down, *across]


def _line(number: int, name: str, places: Points) -> list[str]:
    colour, y = _COLOURS[number % len(_COLOURS)], _TOP + 12 + 20 * number
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places)
    key = f'<path d="M{_WIDTH - _RIGHT + 14} {y - 4}h20" stroke="{colour}" stroke-width="2"/>'
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}',
        key + _text(_WIDTH - _RIGHT + 40, y, name, "start"),
    ]


def _text(x: float, y: float, words: str, anchor: str = "middle", size: int = 12) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-size="{size}">{words}</text>'
