"""Expectations on the events of a stream. Each one holds, or raises `Unmet`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.http.messages import dig
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.record import Record

_DONE: Final = "[DONE]"
_LAST: Final = frozenset({"response.completed", "response.failed", "response.incomplete"})
_ERROR: Final = "error"
_CHUNK: Final = "chat.completion.chunk"
_SHOWN: Final = 4


async def one_id(_: Record, exchange: Exchange, __: Any) -> None:
    """All chunks of a chat completion, and all response objects in the events of a response, have one id."""
    place = ("id",) if exchange.verb == "chat" else ("response", "id")
    values = [dig(event, *place) for event in _events(exchange) if _names_the_answer(exchange.verb, event)]
    if not values and exchange.answer.failed_in_stream:
        raise Untested("the stream failed before it named the answer")
    ids = list(dict.fromkeys(values))
    if len(ids) != 1 or not ids[0]:
        shown = ", ".join(str(each) for each in ids[:_SHOWN])
        raise Unmet("one id in all events", f"{len(ids)} ids in {len(values)} events: {shown or 'none'}")


def _names_the_answer(verb: str, event: object) -> bool:
    """Whether an event is a chunk, or contains the response. Events of the target's own kind are left to ECHO-12."""
    if verb == "chat":
        return "choices" in event or event.get("object") == _CHUNK if isinstance(event, Mapping) else False
    return dig(event, "response") is not None


async def ended(_: Record, exchange: Exchange, __: Any) -> None:
    """A chat stream ends with one [DONE], after a finish_reason or an error; a response's with response.completed, response.failed or an error event."""
    events = _events(exchange)
    if exchange.verb == "respond" and dig(events[-1] if events else None, "type") == _ERROR:
        events = [*events[:-1], {"type": "response.failed"}]
    kinds = [_kind(exchange.verb, event) for event in events]
    expected = ["finish", "end"] if exchange.verb == "chat" else ["end"]
    if [kind for kind in kinds if kind] != expected or "end" not in kinds[-1:]:
        wanted = "a finish_reason or an error, then [DONE]" if exchange.verb == "chat" else " or ".join(sorted(_LAST))
        raise Unmet(f"{wanted}, once and last", f"… {', '.join(str(event)[:80] for event in events[-2:]) or 'nothing'}")


def _kind(verb: str, event: object) -> str:
    """Whether an event finishes the answer (`finish`), ends the stream (`end`), or neither (empty)."""
    if verb == "chat":
        finishes = dig(event, "choices", 0, "finish_reason") or dig(event, "error")
        return "end" if event == _DONE else "finish" if finishes else ""
    return "end" if dig(event, "type") in _LAST else ""


def _events(exchange: Exchange) -> Sequence[object]:
    """The events of a stream. On /v1/responses a final [DONE] is allowed and ignored."""
    if not exchange.answer.streamed:
        raise Untested("the answer is not a stream")
    if exchange.request.hang_up:
        raise Untested("the client hung up before the end")
    events = exchange.answer.events
    return events[:-1] if exchange.verb == "respond" and events[-1:] == (_DONE,) else events


EXPECTATIONS: Final[Mapping[str, Callable[[Record, Exchange, Any], Awaitable[None]]]] = {
    word.__name__: word for word in (one_id, ended)
}
