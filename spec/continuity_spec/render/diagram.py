"""Draw the elements of a sequence diagram as plain text.

A request takes one line and its answer another; dividers go across all lanes. This module knows columns and line characters; it
does not know scenarios.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from continuity_spec.render.arrows import Arrow, Divider, Element, Lane
from continuity_spec.render.phrases import Phrases

WIDTH: Final = 80
_RIGHT_OF_SERVER: Final = 0.40
"""The part of the width between server and model. The ids between client and server need more room."""


@dataclass(frozen=True, slots=True)
class LineStyle:
    """The characters that a diagram is drawn with."""

    line: str
    bar: str
    right: str
    left: str
    stop: str
    divider: str
    crossing: str
    then: str


UNICODE: Final = LineStyle("─", "│", "▶", "◀", "✗", "═", "╪", "▸")
ASCII: Final = LineStyle("-", "|", ">", "<", "X", "=", "|", ">")


def line_style_for(encoding: str | None) -> LineStyle:
    """Choose Unicode lines if the encoding of the terminal has them, else ASCII."""
    try:
        f"{UNICODE.line}{UNICODE.bar}{UNICODE.right}{UNICODE.stop}{UNICODE.crossing}".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def draw(elements: Sequence[Element], style: LineStyle, width: int = WIDTH) -> list[str]:
    """Draw the elements from top to bottom, in lines of at most `width` characters."""
    layout = _Layout.for_elements(elements, style, width)
    lines = [layout.head(elements)]
    last = ""
    for row in _rows(elements):
        lines += layout.row(row, numbered=row[0].number != last)
        last = row[0].number
    return [line.rstrip() for line in lines]


def _rows(elements: Sequence[Element]) -> Iterator[tuple[Element, ...]]:
    """Put a request and the call of the model that follows from it into one row, and likewise the two answers."""
    waiting: Element | None = None
    for element in elements:
        if waiting is not None and _continues(waiting, element):
            yield (waiting, element)
            waiting = None
            continue
        if waiting is not None:
            yield (waiting,)
        waiting = element
    if waiting is not None:
        yield (waiting,)


def _continues(first: Element, second: Element) -> bool:
    if not isinstance(first, Arrow) or not isinstance(second, Arrow):
        return False
    return first.end is second.start and first.start is not second.end and first.number == second.number


@dataclass(frozen=True, slots=True)
class _Layout:
    """The columns of a diagram, and how its rows are drawn in them."""

    style: LineStyle
    numbers: int
    principals: int
    left: int
    right: int

    @classmethod
    def for_elements(cls, elements: Sequence[Element], style: LineStyle, width: int) -> _Layout:
        numbers = max((len(element.number) for element in elements), default=0)
        names = {element.principal for element in elements if isinstance(element, Arrow)}
        principals = max(map(len, names)) + 1 if len(names) > 1 else 0
        room = width - numbers - principals - len("  │││") - 1
        right = int(room * _RIGHT_OF_SERVER)
        return cls(style, numbers, principals, room - right, right)

    @property
    def margin(self) -> int:
        return self.numbers + self.principals + 2

    def head(self, elements: Sequence[Element]) -> str:
        names = list(dict.fromkeys(element.principal for element in elements if isinstance(element, Arrow)))
        client = names[0] if len(names) == 1 else "client"
        start = max(self.margin - len(client) // 2, 0)
        server = self.margin + 1 + self.left - len("server") // 2
        model = self.margin + 2 + self.left + self.right - len("model") + 1
        return f"{'':{start}}{client}".ljust(server) + "server".ljust(model - server) + "model"

    def row(self, row: tuple[Element, ...], *, numbered: bool) -> Iterator[str]:
        if isinstance(row[0], Divider):
            return self._divider(row[0], numbered=numbered)
        return self._arrows([element for element in row if isinstance(element, Arrow)], numbered=numbered)

    def _divider(self, divider: Divider, *, numbered: bool) -> Iterator[str]:
        number = divider.number if numbered else ""
        yield self._across(number, f"{self.style.divider} {divider.text[0]} ", self.style.divider, self.style.crossing)
        for note in divider.text[1:]:
            yield from (
                self._across("", f"  {line} ", " ", self.style.bar)
                for line in _wrapped(note, self.left + self.right - 2)
            )

    def _across(self, number: str, text: str, fill: str, crossing: str) -> str:
        line = f"{crossing}{fill * self.left}{crossing}{fill * self.right}{crossing}"
        return f"{self._lead(number, '')}{line[0]}{text}{line[1 + len(text) :]}"

    def _arrows(self, arrows: Sequence[Arrow], *, numbered: bool) -> Iterator[str]:
        sides = [min(arrow.start, arrow.end) for arrow in arrows]
        left, right = (
            next((self._cell(arrow, width) for arrow, at in zip(arrows, sides, strict=True) if at is side), [])
            for side, width in ((Lane.CLIENT, self.left), (Lane.SERVER, self.right))
        )
        for line, (left_cell, right_cell) in enumerate(zip_longest(left, right, fillvalue="")):
            named = numbered and line == 0
            lead = self._lead(arrows[0].number, arrows[0].principal) if named else self._lead("", "")
            bars = [self._bar(arrows, lane, first=line == 0) for lane in Lane]
            yield f"{lead}{bars[0]}{left_cell:{self.left}}{bars[1]}{right_cell:{self.right}}{bars[2]}"

    def _bar(self, arrows: Sequence[Arrow], lane: Lane, *, first: bool) -> str:
        stopped = first and any(arrow.stops and arrow.end is lane for arrow in arrows)
        return self.style.stop if stopped else self.style.bar

    def _lead(self, number: str, principal: str) -> str:
        who = f"{principal:<{self.principals}}" if self.principals else ""
        return f"{number:>{self.numbers}} {who} "

    def _cell(self, arrow: Arrow, width: int) -> list[str]:
        """Draw an arrow with the beginning of its text on it, and the rest of the text below."""
        to_the_right = arrow.start < arrow.end
        texts = _lines(arrow.text, width)
        room = width - 1
        shaft = f"{self.style.line} {texts[0]} ".ljust(room, self.style.line) if texts else self.style.line * room
        first = f"{shaft}{self.style.right}" if to_the_right else f"{self.style.left}{shaft}"
        indent = "  " if to_the_right else "   "
        return [first, *(f"{indent}{text}" for text in texts[1:])]


def _lines(text: Phrases, width: int) -> list[str]:
    return [line for phrase in text for line in _wrapped(phrase, width - len("◀─  "))]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False)
