"""What the model saw in the call whose answer the client got.

It is read from the probe's log where the probe is the target's model, or from the answer where the model reports what it saw. Otherwise it cannot be
observed.
"""

import re
from collections.abc import Sequence

from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.http.messages import dig
from continuity_conformance.probe.marks import answer_mark, marks_in, saw_list, text_marks
from continuity_conformance.probe.view import View
from continuity_conformance.scenario.context import Context, Observer
from continuity_conformance.scenario.exchange import Exchange

_SHOWN = 200
_CALL = re.compile(r"call_probe_(\d+)")
"""The id of a tool call has the number of the model call that made it."""


def observer(context: Context) -> Observer:
    if context.observer is None:
        raise Untested("the probe model is not attached")
    return context.observer


def call_of(exchange: Exchange) -> int | None:
    """The number of the model call that produced an answer, read from its text or its tool calls; None if they have none."""
    answered = answer_mark(exchange.reading.text, exchange.mark) if exchange.reading is not None else None
    return answered.call if answered is not None else _call_of_tools(exchange)


def _call_of_tools(exchange: Exchange) -> int | None:
    calls = exchange.reading.tool_calls if exchange.reading is not None else ()
    numbers = (_CALL.match(str(call.get("call_id") or call.get("id"))) for call in calls)
    return next((int(number[1]) for number in numbers if number), None)


async def find_view(context: Context, exchange: Exchange) -> View:
    """What the model saw for an answer. Raises Unmet if the answer is not from the model, Untested if nothing can be observed."""
    if context.target.observed == "nothing":
        raise Untested("what the model saw cannot be observed: the answers do not come from the probe model")
    text = exchange.reading.text if exchange.reading is not None else ""
    answered = answer_mark(text, exchange.mark)
    if answered is None:
        _require_own_tools(context, exchange)
        called = _call_of_tools(exchange)
        if called is not None and context.target.observed == "probe":
            return await _logged(observer(context), called, text)
        raise Unmet("an answer of the model", text[:_SHOWN] or "no text")
    if context.target.observed == "answers":
        return _reported(answered.saw)
    view = await _logged(observer(context), answered.call, text)
    require_one_try(view, text, exchange.mark, answered.call)
    return view


def require_one_try(view: View, text: str, mark: str, number: int) -> None:
    """Raise Unmet if the text has pieces of another answer to the same turn, of which the model did not know when it gave this one."""
    known = {number, *(seen.call for seen in view.sightings if seen.kind == "answer")}
    if any(seen.kind == "answer" and seen.mark == mark and seen.call not in known for seen in text_marks(text)):
        raise Unmet("one answer of the model", f"pieces of several: {text[:_SHOWN]}")


def _require_own_tools(context: Context, exchange: Exchange) -> None:
    """Raise Untested if the target passed the call of its own tool on to the client: it has no tool of the name that the profile gives."""
    own = {tool.name for tool in (context.target.profile.writes, context.target.profile.reads) if tool is not None}
    calls = exchange.reading.tool_calls if exchange.reading is not None else ()
    names = {str(call.get("name") or dig(call, "function", "name")) for call in calls}
    if own & names:
        raise Untested(
            f"the target has no tool {', '.join(sorted(own & names))} (`tools` of the profile): it asks the client to run it"
        )


def _reported(saw: str | None) -> View:
    if saw is None:
        raise Untested("the model did not say what it saw")
    sightings = tuple(saw_list(saw))
    return View(sightings, frozenset(mark for sighting in sightings for mark in sighting.covers))


async def _logged(probe: Observer, number: int, text: str) -> View:
    call = await probe.call(number)
    if call is None:
        raise Unmet("an answer of the model", f"an answer that the model never gave: {text[:_SHOWN]}")
    sightings = tuple(marks_in(call.messages))
    summaries = [sighting.call for sighting in sightings if sighting.kind == "summary"]
    return View(sightings, await _summarised(probe, summaries), call.messages)


async def _summarised(probe: Observer, numbers: Sequence[int], known: frozenset[int] = frozenset()) -> frozenset[str]:
    """The marks of the user turns that summaries cover, including summaries of summaries."""
    marks: set[str] = set()
    for number in (number for number in numbers if number not in known):
        call = await probe.call(number)
        sightings = marks_in(call.messages) if call is not None else []
        marks |= {sighting.mark for sighting in sightings if sighting.kind == "user"}
        earlier = [sighting.call for sighting in sightings if sighting.kind == "summary"]
        marks |= await _summarised(probe, earlier, known | {number})
    return frozenset(marks)


async def times_asked(context: Context, mark: str) -> int:
    """How often the model was called with this turn as the newest."""
    calls = await observer(context).calls(frozenset({mark}))
    return sum(call.newest == mark and call.last and not call.summary for call in calls)


async def summary_calls(context: Context, marks: frozenset[str]) -> int:
    return sum(call.summary for call in await observer(context).calls(marks))
