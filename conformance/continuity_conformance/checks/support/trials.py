"""Trials of claims *not* to do something: each trial returns True if it refutes its claim."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from continuity_conformance.core.failure import Untested
from continuity_conformance.http.messages import dig
from continuity_conformance.probe.marks import answer_mark
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange

Trial = Callable[[Dialogue], Awaitable[bool]]
TRIALS: Final[dict[str, Trial]] = {}
"""The trial of each claim."""
_PAIR: Final = 2
_ANY: Final[Mapping[str, object]] = {"status": "any"}
_AS_BOB: Final[Mapping[str, str]] = {"as": "bob"}


def trial(claim: str) -> Callable[[Trial], Trial]:
    """Register the trial of this claim."""

    def register(function: Trial) -> Trial:
        TRIALS[claim] = function
        return function

    return register


@trial("no responses")
async def _responses(dialogue: Dialogue) -> bool:
    """An endpoint that keeps nothing is no offer: the second response must see the first."""
    first = await dialogue.do("respond", _ANY, say="red")
    if first.reading is None or not first.reading.id:
        return False
    second = await dialogue.do("respond", _ANY, say="blue", previous_response_id=first.reading.id)
    if not second.answer.accepted:
        return False
    await dialogue.record.view(second)
    return "red" in (second.seen or ())


@trial("no stored-responses")
async def _stored_responses(dialogue: Dialogue) -> bool:
    created = await dialogue.do("respond", _ANY, say="red")
    if created.reading is None or not created.reading.id:
        return False
    answer = (await dialogue.do("get", _ANY, response=created.reading.id)).answer
    return answer.accepted and dig(answer.body, "id") == created.reading.id


@trial("no conversations")
async def _conversations(dialogue: Dialogue) -> bool:
    answer = (await dialogue.do("request", _ANY, method="POST", path="/v1/conversations", body={})).answer
    return answer.accepted and isinstance(dig(answer.body, "id"), str)


@trial("no streaming")
async def _streaming(dialogue: Dialogue) -> bool:
    answer = (await dialogue.do("chat", _ANY, say="red", stream=True)).answer
    return answer.accepted and answer.streamed


@trial("no sessions")
async def _sessions(dialogue: Dialogue) -> bool:
    session = dialogue.variables.text("$id", "session")
    await dialogue.do("chat", _ANY, session="$id", say="red")
    answer = (await dialogue.do("get", _ANY, session="$id")).answer
    return answer.accepted and dig(answer.body, "id") == session


@trial("no cors")
async def _cors(dialogue: Dialogue) -> bool:
    headers = {"Origin": "$ORIGIN", "Access-Control-Request-Method": "POST"}
    exchange = await dialogue.do("request", _ANY, method="OPTIONS", path="/v1/chat/completions", headers=headers)
    return bool(exchange.answer.fields("Access-Control-Allow-Origin"))


@trial("no idempotency")
async def _idempotency(dialogue: Dialogue) -> bool:
    first = await dialogue.do("chat", _ANY, session="$id", say="red", idempotency_key="$key")
    second = await dialogue.do("chat", _ANY, session="$id", say="red", idempotency_key="$key")
    reply = _reply(first)
    return reply is not None and (reply == _reply(second) or _is_one_model_call(first, second))


@trial("no client-tools")
async def _client_tools(dialogue: Dialogue) -> bool:
    exchange = await dialogue.do("chat", _ANY, session="$id", say="blue", model="calls client")
    return bool(exchange.reading and exchange.reading.tool_calls)


@trial("no compression")
async def _compression(dialogue: Dialogue) -> bool:
    await dialogue.do("chat", _ANY, session="$long", say="red")
    return (await dialogue.do("chat", _ANY, session="$long", say="blue", compress=True)).answer.accepted


@trial("no tenants")
async def _tenants(dialogue: Dialogue) -> bool:
    """Two keys under which one id names two conversations belong to two principals."""
    _must_have_bob(dialogue)
    await dialogue.do("chat", _ANY, session="$shared", say="red")
    his = await dialogue.do("chat", _ANY, session="$shared", say="pink", **_AS_BOB)
    if not his.answer.accepted:
        return False
    await dialogue.record.view(his)
    return his.seen is not None and "red" not in his.seen


@trial("derivation: none")
async def _derivation(dialogue: Dialogue) -> bool:
    header = dialogue.context.target.header
    first = await dialogue.do("chat", _ANY, say="white")
    second = await dialogue.do("chat", _ANY, say="white")
    return bool(first.answer.fields(header)) and first.answer.fields(header) == second.answer.fields(header)


@trial("environment: none")
async def _environment(dialogue: Dialogue) -> bool:
    note = dialogue.variables.text("$note")
    await dialogue.do("chat", _ANY, session="$id", say="green", model={"writes": "$note"})
    reading = await dialogue.do("chat", _ANY, session="$id", say="grey", model={"reads": "$note"})
    return any(note in result for result in (await dialogue.record.view(reading)).results())


@trial("tells: nothing")
async def _session_header(dialogue: Dialogue) -> bool:
    exchange = await dialogue.do("chat", _ANY, session="$id", say="black")
    return bool(exchange.answer.fields(dialogue.context.target.header))


@trial("single user")
async def _single_user(dialogue: Dialogue) -> bool:
    _must_have_bob(dialogue)
    return (await dialogue.do("chat", _ANY, session="$his", say="pink", **_AS_BOB)).answer.accepted


def _must_have_bob(dialogue: Dialogue) -> None:
    if "bob" not in dialogue.context.target.profile.everyone:
        raise Untested("no key of a second principal")


def _is_one_model_call(first: Exchange, second: Exchange) -> bool:
    """Whether one call of the model made both answers, even if they have two ids. The answers carry the call's number."""
    readings = [(each.reading.text, each.mark) for each in (first, second) if each.reading]
    numbers = {answer.call for text, mark in readings if (answer := answer_mark(text, mark)) is not None}
    return len(readings) == _PAIR and len(numbers) == 1 and readings[0] == readings[1]


def _reply(exchange: Exchange) -> tuple[str | None, str] | None:
    return (exchange.reading.id, exchange.reading.text) if exchange.reading else None
