"""The probe model in the middle of a stream: it breaks off, or pauses until it is released. And what no model takes."""

import asyncio

import aiohttp
import pytest

from continuity_conformance.http.messages import event_data
from continuity_conformance.http.sse import EventStreamDecoder
from continuity_conformance.probe.marks import new_mark, user_text
from continuity_conformance.probe.script import Script
from continuity_conformance.probe.server import Probe, listening


def streamed(script: Script, *, release_after_first: bool = False) -> tuple[object, ...]:
    """The events of one streamed call under this script."""

    async def ask() -> str:
        probe, mark = Probe(), new_mark()
        await probe.script(mark, script)
        body = {"stream": True, "messages": [{"role": "user", "content": user_text(mark, "red")}]}
        async with (
            listening(probe) as url,
            aiohttp.ClientSession() as client,
            client.post(f"{url}/chat/completions", json=body) as answer,
        ):
            text = (await answer.content.readuntil(b"\n\n")).decode()
            if release_after_first:
                await probe.arrived(mark)
                await probe.release(mark)
            return text + (await answer.read()).decode()

    return event_data(EventStreamDecoder().feed(asyncio.run(ask()).encode()))


def test_a_model_that_breaks_off_sends_one_piece_and_no_end():
    (piece,) = streamed(Script(breaks_off=True))

    assert piece["choices"][0]["delta"]["content"]
    assert piece["choices"][0]["finish_reason"] is None


def test_a_model_that_pauses_sends_its_first_piece_and_the_rest_when_it_is_released():
    paused, whole = streamed(Script(pauses=True), release_after_first=True), streamed(Script())

    assert [type(event) for event in paused] == [type(event) for event in whole]
    assert paused[-1] == "[DONE]"


ODD = ({"a": 1}, [[]], None, 1e308, "", [None], {"type": {}}, [{"type": []}])
"""What clients send where something else belongs, and a gateway may pass on."""
BODIES = {
    "chat/completions": [
        *(
            {"messages": [{"role": "user", "content": "Hello", name: odd}]}
            for name in ("role", "content", "tool_calls", "name")
            for odd in ODD
        ),
        *({"messages": [{"role": "tool", "content": odd, "tool_call_id": odd}]} for odd in ODD),
        *(
            {"messages": [{"role": "user", "content": "Hello"}], name: odd}
            for name in ("stream", "tools", "model")
            for odd in ODD
        ),
    ],
    "responses": [
        *({"input": odd} for odd in ODD),
        *(
            {"input": [{"type": "message", "role": "user", "content": "Hello", name: odd}]}
            for name in ("type", "role", "content")
            for odd in ODD
        ),
        *({"input": "Hello", "instructions": odd} for odd in ODD),
    ],
    "messages": [
        *({"messages": [{"role": "user", "content": odd}]} for odd in ODD),
        *({"messages": [{"role": "user", "content": "Hello"}], "system": odd} for odd in ODD),
    ],
}


@pytest.mark.parametrize("path", BODIES)
def test_no_body_makes_the_model_fail(path: str):
    """Else a gateway that passes a client's body on, and a failure of its model back, seems to fail itself."""

    async def ask() -> list[object]:
        async with listening(Probe()) as url, aiohttp.ClientSession() as client:
            answers = [(body, (await client.post(f"{url}/{path}", json=body)).status) for body in BODIES[path]]
        return [body for body, status in answers if status not in {200, 400}]

    assert asyncio.run(ask()) == []


def test_what_is_no_message_or_has_no_role_that_there_is_is_refused():
    async def ask(message: object) -> int:
        body = {"messages": [message]}
        async with (
            listening(Probe()) as url,
            aiohttp.ClientSession() as client,
            client.post(f"{url}/chat/completions", json=body) as answer,
        ):
            return answer.status

    said = [{"role": role, "content": "Hello"} for role in ("system", "user", "narrator")]

    assert [asyncio.run(ask(message)) for message in [*said, None]] == [200, 200, 400, 400]
