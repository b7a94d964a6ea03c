"""A dialogue as what goes between three lanes: the client, the server, and the model.

A list of events is all that a picture needs. It is made here from a scenario, which says what ought to happen; whoever knows what did happen
can make the same list of that. It knows no columns and no ink.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from continuity_spec import phrases
from continuity_spec.expectations import refuses
from continuity_spec.model import REQUESTS, TURNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from continuity_spec.model import Always, Scenario, Step
    from continuity_spec.phrases import Phrases


_NO_ANSWER = ("fails", "rate limited")


class Lane(enum.IntEnum):
    """From left to right."""

    CLIENT = 0
    SERVER = 1
    MODEL = 2


@dataclass(frozen=True, slots=True)
class Arrow:
    """Something that one lane says to the next. `stops`: it goes no further, because it is refused or fails there."""

    number: str
    principal: str
    start: Lane
    end: Lane
    text: Phrases = ()
    stops: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happens across the lanes: a control, or the beginning of what happens at once."""

    number: str
    text: Phrases


Event = Arrow | Mark


def events(scenario: Scenario) -> list[Event]:
    """Give what happens in a scenario, in the order in which it is drawn."""
    found: list[Event] = []
    unwritable = False
    for number, step in enumerate(scenario.steps, 1):
        found += chain(*_halves(step, str(number), unwritable=unwritable))
        if step.verb in {"break_store", "mend_store"}:
            unwritable = step.params.get("what") in {"writes", "all"}
    return found


def events_of_always(always: Always) -> list[Event]:
    """Give one exchange that stands for every answer that an `always` entry speaks of."""
    asked = " or ".join(sorted(always.after)) + (
        "" if always.streamed is None else f", stream {always.streamed}".lower()
    )
    reaches = not TURNS.isdisjoint(always.after)
    there = Arrow("", "anybody", Lane.CLIENT, Lane.SERVER, (f"every {asked}",))
    back = Arrow("", "anybody", Lane.SERVER, Lane.CLIENT, phrases.told({"status": always.answered, **always.expect}))
    return [
        there,
        *(_to_model(there, phrases.seen(always.expect)) if reaches else ()),
        *(_from_model(back) if reaches else ()),
        back,
    ]


def _halves(step: Step, number: str, *, unwritable: bool) -> tuple[list[Event], list[Event]]:
    """Give what happens up to the moment when the model has been asked, and from its answer on."""
    if step.together:
        parts = [_halves(part, f"{number}.{k}", unwritable=unwritable) for k, part in enumerate(step.together, 1)]
        all_at_once = Mark(number, ("together, all at once:",))
        return [all_at_once, *chain(*(there for there, _ in parts))], list(chain(*(back for _, back in parts)))
    if step.verb not in REQUESTS:
        return [Mark(number, phrases.done(step))], []
    return _exchange(step, number, reaches=_reaches_model(step, unwritable=unwritable))


def _reaches_model(step: Step, *, unwritable: bool) -> bool:
    """A refusal never reaches the model, unless the step itself makes the model fail or the store's writes are broken."""
    return step.verb in TURNS and ("model" in step.params or unwritable or not refuses(step.expect))


def _exchange(step: Step, number: str, *, reaches: bool) -> tuple[list[Event], list[Event]]:
    principal = str(step.params.get("as", "alice"))
    refused = not reaches and refuses(step.expect)
    there = Arrow(number, principal, Lane.CLIENT, Lane.SERVER, phrases.asked(step), stops=refused)
    back = Arrow(number, principal, Lane.SERVER, Lane.CLIENT, phrases.told(step.expect))
    if not reaches:
        return [there], [back]
    model = step.params.get("model")
    call = _to_model(there, phrases.seen(step.expect), fails=model in _NO_ANSWER)
    answer = _from_model(back, phrases.answered(model))
    return [there, *call, *_meanwhile(step, number)], [*answer, back]


def _meanwhile(step: Step, number: str) -> Iterator[Event]:
    """Give what happens between the call of the model and its answer."""
    if step.params.get("compress") is True:
        yield Mark(number, ("the server compresses in this turn",))
    if step.during:
        yield Mark(number, ("the model holds its answer; meanwhile:",))
    for k, inner in enumerate(step.during, 1):
        yield from chain(*_halves(inner, f"{number}.{k}", unwritable=False))


def _to_model(request: Arrow, text: Phrases, *, fails: bool = False) -> Sequence[Event]:
    return (Arrow(request.number, request.principal, Lane.SERVER, Lane.MODEL, text, stops=fails),)


def _from_model(answer: Arrow, text: Phrases = ()) -> Sequence[Event]:
    return (Arrow(answer.number, answer.principal, Lane.MODEL, Lane.SERVER, text),)
