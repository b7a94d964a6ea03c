"""The dialogue of a scenario as HTML: client, server and model from left to right, time from top to bottom.

The text wraps, so the drawing is readable on a phone. `site.css` draws the lines.
"""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise

from continuity_spec.render.arrows import Arrow, Divider, Element, Lane


def draw(elements: Sequence[Element]) -> str:
    """Draw the elements of a sequence diagram."""
    return "".join(('<div class="sequence" markdown="0">', *_rows(elements), "</div>"))


def _rows(elements: Sequence[Element]) -> Iterator[str]:
    names = list(dict.fromkeys(each.principal for each in elements if isinstance(each, Arrow)))
    client = names[0] if len(names) == 1 else "client"
    yield f'<div class="lanes"><span>{escape(client)}</span><span>server</span><span>model</span></div>'
    numbers = ["", *(each.number for each in elements)]
    for (before, number), element in zip(pairwise(numbers), elements, strict=True):
        yield _row(element, number if number != before else "", named=len(names) > 1)


def _row(element: Element, number: str, *, named: bool) -> str:
    label = f'<span class="number">{escape(number)}</span>'
    if isinstance(element, Divider):
        return f'<div class="step divider">{label}<span class="across">{_phrases(element.text)}</span></div>'
    side = "model-side" if Lane.MODEL in {element.start, element.end} else "client-side"
    way = "right" if element.start < element.end else "left"
    stops = " stops" if element.stops else ""
    who = f"<b>{escape(element.principal)}</b> " if named and number and side == "client-side" else ""
    text = f'<span class="text">{who}{_phrases(element.text)}</span>'
    return f'<div class="step">{label}<span class="arrow {side} {way}{stops}">{text}</span></div>'


def _phrases(phrases: Sequence[str]) -> str:
    return "<br>".join(escape(phrase) for phrase in phrases)
