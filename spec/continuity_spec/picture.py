"""Draws lane events as plain text: a line for each request and one for its answer, marks across the lanes for what else happens.

It knows columns and ink, and nothing about scenarios or answers.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from continuity_spec.lanes import Arrow, Lane, Mark

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from continuity_spec.lanes import Event
    from continuity_spec.phrases import Phrases

WIDTH: Final = 80
_RIGHT_OF_SERVER: Final = 0.40
"""The share of the model's side: ids stand on the client's, and they are longer."""


@dataclass(frozen=True, slots=True)
class Ink:
    """The characters that a picture is drawn with."""

    line: str
    bar: str
    right: str
    left: str
    stop: str
    mark: str
    crossing: str
    then: str


UNICODE: Final = Ink("─", "│", "▶", "◀", "✗", "═", "╪", "▸")
ASCII: Final = Ink("-", "|", ">", "<", "X", "=", "|", ">")


def ink_for(encoding: str | None) -> Ink:
    """Choose lines where the encoding has them."""
    try:
        f"{UNICODE.line}{UNICODE.bar}{UNICODE.right}{UNICODE.stop}{UNICODE.crossing}".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def draw(events: Sequence[Event], ink: Ink, width: int = WIDTH) -> list[str]:
    """Draw the events from top to bottom, none of the lines wider than `width`."""
    page = _Page.for_events(events, ink, width)
    lines = [page.head(events)]
    last = ""
    for row in _rows(events):
        lines += page.row(row, numbered=row[0].number != last)
        last = row[0].number
    return [line.rstrip() for line in lines]


def _rows(events: Sequence[Event]) -> Iterator[tuple[Event, ...]]:
    """Put a request and the call of the model that it leads to into one row, and likewise the two answers."""
    waiting: Event | None = None
    for event in events:
        if waiting is not None and _goes_on(waiting, event):
            yield (waiting, event)
            waiting = None
            continue
        if waiting is not None:
            yield (waiting,)
        waiting = event
    if waiting is not None:
        yield (waiting,)


def _goes_on(first: Event, second: Event) -> bool:
    if not isinstance(first, Arrow) or not isinstance(second, Arrow):
        return False
    return first.end is second.start and first.start is not second.end and first.number == second.number


@dataclass(frozen=True, slots=True)
class _Page:
    ink: Ink
    numbers: int
    principals: int
    left: int
    right: int

    @classmethod
    def for_events(cls, events: Sequence[Event], ink: Ink, width: int) -> _Page:
        numbers = max((len(event.number) for event in events), default=0)
        names = {event.principal for event in events if isinstance(event, Arrow)}
        principals = max(map(len, names)) + 1 if len(names) > 1 else 0
        room = width - numbers - principals - len("  │││") - 1
        right = int(room * _RIGHT_OF_SERVER)
        return cls(ink, numbers, principals, room - right, right)

    @property
    def margin(self) -> int:
        return self.numbers + self.principals + 2

    def head(self, events: Sequence[Event]) -> str:
        names = list(dict.fromkeys(event.principal for event in events if isinstance(event, Arrow)))
        client = names[0] if len(names) == 1 else "client"
        start = max(self.margin - len(client) // 2, 0)
        server = self.margin + 1 + self.left - len("server") // 2
        model = self.margin + 2 + self.left + self.right - len("model") + 1
        return f"{'':{start}}{client}".ljust(server) + "server".ljust(model - server) + "model"

    def row(self, row: tuple[Event, ...], *, numbered: bool) -> Iterator[str]:
        if isinstance(row[0], Mark):
            return self._mark(row[0], numbered=numbered)
        return self._arrows([event for event in row if isinstance(event, Arrow)], numbered=numbered)

    def _mark(self, mark: Mark, *, numbered: bool) -> Iterator[str]:
        number = mark.number if numbered else ""
        yield self._across(number, f"{self.ink.mark} {mark.text[0]} ", self.ink.mark, self.ink.crossing)
        for note in mark.text[1:]:
            yield from (
                self._across("", f"  {line} ", " ", self.ink.bar) for line in _wrapped(note, self.left + self.right - 2)
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
        for line, (west, east) in enumerate(zip_longest(left, right, fillvalue="")):
            named = numbered and line == 0
            lead = self._lead(arrows[0].number, arrows[0].principal) if named else self._lead("", "")
            bars = [self._bar(arrows, lane, first=line == 0) for lane in Lane]
            yield f"{lead}{bars[0]}{west:{self.left}}{bars[1]}{east:{self.right}}{bars[2]}"

    def _bar(self, arrows: Sequence[Arrow], lane: Lane, *, first: bool) -> str:
        stopped = first and any(arrow.stops and arrow.end is lane for arrow in arrows)
        return self.ink.stop if stopped else self.ink.bar

    def _lead(self, number: str, principal: str) -> str:
        who = f"{principal:<{self.principals}}" if self.principals else ""
        return f"{number:>{self.numbers}} {who} "

    def _cell(self, arrow: Arrow, width: int) -> list[str]:
        """The arrow with the beginning of its text on it, and the rest of the text below."""
        going = arrow.start < arrow.end
        texts = _lines(arrow.text, width)
        room = width - 1
        shaft = f"{self.ink.line} {texts[0]} ".ljust(room, self.ink.line) if texts else self.ink.line * room
        first = f"{shaft}{self.ink.right}" if going else f"{self.ink.left}{shaft}"
        indent = "  " if going else "   "
        return [first, *(f"{indent}{text}" for text in texts[1:])]


def _lines(text: Phrases, width: int) -> list[str]:
    return [line for phrase in text for line in _wrapped(phrase, width - len("◀─  "))]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False)
