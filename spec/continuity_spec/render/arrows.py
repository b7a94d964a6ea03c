"""The elements of a sequence diagram: arrows between client, server and model, and dividers across them.

They are made from a scenario, which says what should happen. This module decides what a diagram shows and in which order, and
not how it is drawn: it knows neither columns nor line characters.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from continuity_spec.expectations import refuses
from continuity_spec.model import REQUESTS, TURNS, Always, Scenario, Step
from continuity_spec.render.phrases import (
    Phrases,
    answer_phrases,
    control_phrases,
    model_action_phrases,
    model_view_phrases,
    request_phrases,
)

_FAILURES = ("fails", "rate limited")
"""What a step can make the model do instead of answering."""


class Lane(enum.IntEnum):
    """The participants, from left to right."""

    CLIENT = 0
    SERVER = 1
    MODEL = 2


@dataclass(frozen=True, slots=True)
class Arrow:
    """A request or an answer from one lane to the next. `stops` is True if it is refused or fails at its end."""

    number: str
    principal: str
    start: Lane
    end: Lane
    text: Phrases = ()
    stops: bool = False


@dataclass(frozen=True, slots=True)
class Divider:
    """A line across all lanes: a control, or the start of steps that happen at the same time."""

    number: str
    text: Phrases


Element = Arrow | Divider


def elements(scenario: Scenario) -> list[Element]:
    """List the elements for a scenario, from top to bottom. An answer that was told before is a replay, for which the model is not called."""
    drawn: list[Element] = []
    unwritable = False
    told: set[object] = set()
    for number, step in enumerate(scenario.steps, 1):
        replays = step.expect.get("answer") in told
        drawn += chain(*_halves(step, str(number), unwritable=unwritable, replays=replays))
        told |= {part.expect["answer"] for part in step.walk() if "answer" in part.expect}
        if step.verb in {"break_store", "mend_store"}:
            unwritable = step.params.get("what") in {"writes", "all"}
    return drawn


def elements_of_always(always: Always) -> list[Element]:
    """List the elements of one exchange that stands for every answer that an `always` requirement is about."""
    asked = " or ".join(sorted(always.after)) + (
        "" if always.streamed is None else f", stream {always.streamed}".lower()
    )
    reaches = not TURNS.isdisjoint(always.after)
    request = Arrow("", "anybody", Lane.CLIENT, Lane.SERVER, (f"every {asked}",))
    expected = answer_phrases({"status": always.answered, **always.expect})
    answer = Arrow("", "anybody", Lane.SERVER, Lane.CLIENT, expected)
    if not reaches:
        return [request, answer]
    return [request, _to_model(request, model_view_phrases(always.expect)), _from_model(answer), answer]


def _halves(step: Step, number: str, *, unwritable: bool, replays: bool = False) -> tuple[list[Element], list[Element]]:
    """Split a step in two: what happens until the model is called, and what happens from its answer on."""
    if step.together:
        parts = [_halves(part, f"{number}.{k}", unwritable=unwritable) for k, part in enumerate(step.together, 1)]
        all_at_once = Divider(number, ("together, all at once:",))
        return [all_at_once, *chain(*(before for before, _ in parts))], list(chain(*(after for _, after in parts)))
    if step.verb not in REQUESTS:
        return [Divider(number, control_phrases(step))], []
    return _exchange(step, number, reaches=not replays and _reaches_model(step, unwritable=unwritable))


def _reaches_model(step: Step, *, unwritable: bool) -> bool:
    """True unless the request is refused. A refusal reaches the model if the model fails or the store cannot be written."""
    return step.verb in TURNS and ("model" in step.params or unwritable or not refuses(step.expect))


def _exchange(step: Step, number: str, *, reaches: bool) -> tuple[list[Element], list[Element]]:
    principal = str(step.params.get("as", "alice"))
    refused = not reaches and refuses(step.expect)
    request = Arrow(number, principal, Lane.CLIENT, Lane.SERVER, request_phrases(step), stops=refused)
    answer = Arrow(number, principal, Lane.SERVER, Lane.CLIENT, answer_phrases(step.expect))
    if not reaches:
        return [request], [answer]
    model = step.params.get("model")
    call = _to_model(request, model_view_phrases(step.expect), fails=model in _FAILURES)
    reply = _from_model(answer, model_action_phrases(model))
    killed = [Divider(number, ("kill as soon as the answer is there",))] if step.params.get("kill") is True else []
    return [request, call, *_meanwhile(step, number)], [reply, answer, *killed]


def _meanwhile(step: Step, number: str) -> Iterator[Element]:
    """Yield what happens between the call of the model and its answer."""
    if step.params.get("compress") is True:
        yield Divider(number, ("the server compresses in this turn",))
    if step.during:
        yield Divider(number, ("the model holds its answer; meanwhile:",))
    for k, inner in enumerate(step.during, 1):
        yield from chain(*_halves(inner, f"{number}.{k}", unwritable=False))


def _to_model(request: Arrow, text: Phrases, *, fails: bool = False) -> Arrow:
    return Arrow(request.number, request.principal, Lane.SERVER, Lane.MODEL, text, stops=fails)


def _from_model(answer: Arrow, text: Phrases = ()) -> Arrow:
    return Arrow(answer.number, answer.principal, Lane.MODEL, Lane.SERVER, text)
