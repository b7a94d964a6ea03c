"""What the model saw: the expectations on the call whose answer the client got. Each holds, or raises `Unmet`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.probe.view import matches, unpaired

if TYPE_CHECKING:
    from continuity_conformance.scenario.context import Exchange
    from continuity_conformance.scenario.dialogue import Dialogue


def said(labels: Sequence[str]) -> str:
    return ", ".join(labels) or "nothing"


async def sees(dialogue: Dialogue, exchange: Exchange, wanted: Any) -> None:
    await dialogue.view(exchange)
    pattern = [exchange.label if label == exchange.step.params.get("say") else label for label in wanted]
    if not matches(pattern, list(exchange.seen or ()), dialogue.copies):
        raise Unmet(said(pattern), said(exchange.seen or ()))


async def recalls(dialogue: Dialogue, exchange: Exchange, wanted: Any) -> None:
    """At least these, in order, each verbatim once or else in a summary; or in the one of the two ways that is asked for."""
    view = await dialogue.view(exchange)
    seen = list(exchange.seen or ())
    verbatim_only, summarised_only = (_with(word, wanted) for word in ("verbatim", "summarised"))
    labels = [label for word in wanted for label in _expanded(word, dialogue)]
    twice = [label for label in labels if seen.count(label) > 1]
    sent = {sighting.mark for sighting in view.sightings if sighting.kind == "user"}
    lost = [label for label in labels if label not in seen and dialogue.speech.mark(label) not in view.summarised]
    lost += [label for label in verbatim_only if label not in seen]
    twice += [label for label in summarised_only if dialogue.speech.mark(label) in sent]
    verbatim = [label for label in labels if label in seen]
    exact = not any(word.startswith("each ") for word in wanted)
    in_order = not exact or [label for label in seen if label in verbatim] == verbatim
    if twice or lost or not in_order:
        summarised = [dialogue.speech.label(mark) for mark in view.summarised]
        raise Unmet(said(wanted), f"{said(seen)} and in a summary {said(sorted(summarised))}")


def _with(modifier: str, wanted: Sequence[str]) -> list[str]:
    return [word.removeprefix(f"{modifier} ") for word in wanted if word.startswith(f"{modifier} ")]


def _expanded(word: str, dialogue: Dialogue) -> list[str]:
    if word.startswith("each "):
        return dialogue.copies[word.removeprefix("each ")]
    return [word.removeprefix("verbatim ").removeprefix("summarised ")]


async def forgets(dialogue: Dialogue, exchange: Exchange, wanted: Any) -> None:
    view = await dialogue.view(exchange)
    marks = {sighting.mark for sighting in view.sightings} | view.summarised
    kept = [label for label in wanted if dialogue.speech.mark(label) in marks]
    if kept:
        raise Unmet(f"nothing of {said(wanted)}", said(kept))


async def summary(dialogue: Dialogue, exchange: Exchange, wanted: Any) -> None:
    view = await dialogue.view(exchange)
    if view.has_summary is not wanted:
        raise Unmet("a summary" if wanted else "no summary", "a summary" if view.has_summary else "no summary")


async def system(dialogue: Dialogue, exchange: Exchange, wanted: Any) -> None:
    view = await dialogue.view(exchange)
    actual = [dialogue.speech.system_label(mark) for mark in view.system_marks()]
    if actual != list(wanted):
        raise Unmet(said(wanted), said(actual))


async def tools(dialogue: Dialogue, exchange: Exchange, _: Any) -> None:
    messages = (await dialogue.view(exchange)).messages
    if messages is None:
        raise Untested("tool calls in what the model saw cannot be observed without the probe model")
    troubles = unpaired(messages)
    if troubles:
        raise Unmet("every tool call with its result right after it, and the reverse", "; ".join(troubles))


async def reads(dialogue: Dialogue, exchange: Exchange, wanted: Any) -> None:
    results = (await dialogue.view(exchange)).results()
    note = "" if wanted == "nothing" else dialogue.names.text(wanted)
    actual = results[-1] if results else "no result of a tool"
    if (note and note not in actual) or (not note and "continuity-" in actual):
        raise Unmet(note or "nothing", actual[:200])


async def ran(dialogue: Dialogue, _: Exchange, wanted: Any) -> None:
    for label, times in wanted.items():
        actual = await dialogue.times_asked(label)
        if actual != times:
            raise Unmet(f"{label}: {times}", f"{label}: {actual}")


EXPECTATIONS: Final[Mapping[str, Callable[[Dialogue, Exchange, Any], Awaitable[None]]]] = {
    word.__name__: word for word in (sees, recalls, forgets, summary, system, tools, reads, ran)
}
