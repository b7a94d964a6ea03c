"""The probe model over every API that targets use, with the real clients: the log is the same, and so is the answer."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

import aiohttp
import openai
import pytest

from continuity_conformance.probe.script import Script
from continuity_conformance.probe.server import Probe, listening

RED, BLUE = "aaaa0000", "bbbb0000"
SYSTEM, ASKED, ANSWER, NEW = "[s:cccc0000] pirate", f"[u:{RED}] red", f"Noted. [a:{RED}#1]", f"[u:{BLUE}] blue"
TURNS = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": ANSWER}, {"role": "user", "content": NEW}]
PARAMETERS = {"type": "object", "properties": {"word": {"type": "string"}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"word": "red"}'}}
LOOK = {"name": "look", "description": "Looks.", "parameters": PARAMETERS}
Ask = Callable[[str, bool], Awaitable[tuple[str, str]]]
"""Asks the model at a URL, plain or streamed. Returns its text, and the calls of tools as `id name arguments`."""


def openai_client(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)


def anthropic() -> Any:
    """The package. To import it takes a second, which no worker needs to collect its tests."""
    return import_module("anthropic")


def anthropic_client(url: str) -> Any:
    return anthropic().AsyncAnthropic(base_url=url.removesuffix("/v1"), api_key="none", max_retries=0)


async def by_chat(url: str, streamed: bool) -> tuple[str, str]:
    result = [{"role": "assistant", "content": None, "tool_calls": [CALL]}]
    result += [{"role": "tool", "tool_call_id": "call_1", "content": "found"}]
    messages: Any = [{"role": "system", "content": SYSTEM}, TURNS[0], *result, *TURNS[1:]]
    tools: Any = [{"type": "function", "function": LOOK}]
    async with openai_client(url) as client:
        if streamed:
            async with client.chat.completions.stream(model="m", messages=messages, tools=tools) as stream:
                message = (await stream.get_final_completion()).choices[0].message
        else:
            message = (
                (await client.chat.completions.create(model="m", messages=messages, tools=tools)).choices[0].message
            )
    calls = [f"{call.id} {call.function.name} {call.function.arguments}" for call in message.tool_calls or []]
    return message.content or "", ", ".join(calls)


async def by_responses(url: str, streamed: bool) -> tuple[str, str]:
    called = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": '{"word": "red"}'}
    items: Any = [TURNS[0], {"type": "reasoning", "id": "rs_1", "summary": []}, called]
    items += [{"type": "function_call_output", "call_id": "call_1", "output": "found"}, *TURNS[1:]]
    tools: Any = [{"type": "function", **LOOK}]
    async with openai_client(url) as client:
        asked: Any = {"model": "m", "instructions": SYSTEM, "input": items, "tools": tools}
        if streamed:
            async with client.responses.stream(**asked) as stream:
                response = await stream.get_final_response()
        else:
            response = await client.responses.create(**asked)
    calls = [f"{item.call_id} {item.name} {item.arguments}" for item in response.output if item.type == "function_call"]
    return response.output_text, ", ".join(calls)


async def by_messages(url: str, streamed: bool) -> tuple[str, str]:
    used = {"type": "tool_use", "id": "call_1", "name": "look", "input": {"word": "red"}}
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "found"}]}
    messages: Any = [
        {"role": "user", "content": [{"type": "text", "text": ASKED}]},
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [result]},
        *TURNS[1:],
    ]
    tools: Any = [{"name": "look", "description": "Looks.", "input_schema": PARAMETERS}]
    asked: Any = {"model": "m", "max_tokens": 99, "system": SYSTEM, "messages": messages, "tools": tools}
    async with anthropic_client(url) as client:
        if streamed:
            async with client.messages.stream(**asked) as stream:
                message = await stream.get_final_message()
        else:
            message = await client.messages.create(**asked)
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [
        f"{block.id} {block.name} {json.dumps(block.input)}" for block in message.content if block.type == "tool_use"
    ]
    return text, ", ".join(calls)


APIS = pytest.mark.parametrize("ask", [by_chat, by_responses, by_messages])
BOTH = pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])


def answered(ask: Ask, streamed: bool, script: Script | None = None) -> tuple[str, str]:
    async def talk() -> tuple[str, str]:
        probe = Probe()
        await probe.script(BLUE, script or Script())
        async with listening(probe) as url:
            return await ask(url, streamed)

    return asyncio.run(talk())


@APIS
@BOTH
def test_the_answer_is_the_same(ask: Ask, streamed: bool):
    assert answered(ask, streamed) == (f"Noted. [a:{BLUE}#1]", "")


@APIS
@BOTH
def test_tools_are_called_alike(ask: Ask, streamed: bool):
    script = Script(tool="look", arguments='{"word": "red"}', second_tool="kit_lookup")

    expected = 'call_probe_1 look {"word": "red"}, call_probe_1_2 kit_lookup {}'
    assert answered(ask, streamed, script) == ("", expected)


@APIS
@BOTH
def test_a_text_may_stand_beside_a_call(ask: Ask, streamed: bool):
    script = Script(tool="look", arguments='{"word": "red"}', speaks=True)

    assert answered(ask, streamed, script) == (f"Noted. [a:{BLUE}#1]", 'call_probe_1 look {"word": "red"}')


def logged(ask: Ask, streamed: bool) -> dict[str, object]:
    """The call as the log has it, with contents as texts."""

    async def talk() -> dict[str, object]:
        probe = Probe()
        async with listening(probe) as url:
            await ask(url, streamed)
            async with aiohttp.ClientSession() as client, client.get(f"{url}/../probe/calls/1") as got:
                call: dict[str, Any] = await got.json()
        for message in call["messages"]:
            content = message["content"]
            message["content"] = content[0]["text"] if isinstance(content, list) else content
        return call

    return asyncio.run(talk())


@APIS
@BOTH
def test_the_log_is_the_same(ask: Ask, streamed: bool):
    assert logged(ask, streamed) == logged(by_chat, streamed=False)


@APIS
@BOTH
@pytest.mark.parametrize(("script", "status"), [(Script(fails=True), 500), (Script(limited=True), 429)])
def test_failures_are_errors_of_the_client(ask: Ask, streamed: bool, script: Script, status: int):
    with pytest.raises((openai.APIStatusError, anthropic().APIStatusError)) as raised:
        answered(ask, streamed, script)

    assert raised.value.status_code == status


ENDS = {"chat/completions": "[DONE]", "responses": "response.completed", "messages": "message_stop"}
NO_REASON = [("chat/completions", "[DONE]", '"stop"'), ("messages", "message_stop", "end_turn")]


def streams(path: str, script: Script) -> tuple[str, str]:
    """The streams of two calls with the same messages."""

    async def talk() -> tuple[str, str]:
        probe = Probe()
        await probe.script(BLUE, script)
        body = {"stream": True, "messages": TURNS, "input": TURNS}
        async with listening(probe) as url, aiohttp.ClientSession() as client:
            first, second = [await (await client.post(f"{url}/{path}", json=body)).text() for _ in range(2)]
            return first, second

    return asyncio.run(talk())


def streamed_text(path: str, script: Script, *, releases: bool = False) -> str:
    """The whole stream of one call, released after its first piece if it waits."""

    async def talk() -> str:
        probe = Probe()
        await probe.script(BLUE, script)
        body = {"stream": True, "messages": TURNS, "input": TURNS}
        async with (
            listening(probe) as url,
            aiohttp.ClientSession() as client,
            client.post(f"{url}/{path}", json=body) as got,
        ):
            first = (await got.content.readuntil(b"Noted")).decode()
            if releases:
                await probe.arrived(BLUE)
                await probe.release(BLUE)
            return first + (await got.read()).decode()

    return asyncio.run(talk())


@pytest.mark.parametrize(("path", "end"), ENDS.items())
def test_a_stream_that_breaks_off_has_a_first_piece_and_no_end(path: str, end: str):
    assert end not in streamed_text(path, Script(breaks_off=True))


@pytest.mark.parametrize(("path", "end", "reason"), NO_REASON)
def test_a_stream_may_have_its_end_marker_and_no_reason(path: str, end: str, reason: str):
    text = streamed_text(path, Script(breaks_off=True, ends=True))

    assert end in text
    assert reason not in text


@pytest.mark.parametrize("path", ENDS)
def test_a_stream_that_breaks_off_once_has_the_whole_text_and_is_whole_the_next_time(path: str):
    broken, whole = streams(path, Script(breaks_off=True, once=True))

    assert (f"[a:{BLUE}#1]" in broken, ENDS[path] in broken) == (True, False)
    assert ENDS[path] in whole


@pytest.mark.parametrize(("path", "end"), ENDS.items())
def test_a_stream_that_pauses_goes_on_when_it_is_released(path: str, end: str):
    assert end in streamed_text(path, Script(pauses=True), releases=True)


LIMITS = {"chat/completions": '"length"', "responses": "response.incomplete", "messages": '"max_tokens"'}


@pytest.mark.parametrize(("path", "limit"), LIMITS.items())
def test_a_stream_that_stops_early_says_so(path: str, limit: str):
    assert limit in streamed_text(path, Script(cut_short=True))


@pytest.mark.parametrize("path", LIMITS)
def test_an_answer_stops_early_once_and_not_when_the_model_is_asked_to_go_on(path: str):
    goes_on = [*TURNS, {"role": "assistant", "content": "Noted."}, {"role": "user", "content": "Go on."}]

    async def talk() -> list[str]:
        probe = Probe()
        await probe.script(BLUE, Script(cut_short=True))
        async with listening(probe) as url, aiohttp.ClientSession() as client:
            answers = [
                client.post(f"{url}/{path}", json={"messages": each, "input": each}) for each in (TURNS, goes_on)
            ]
            return [await (await answer).text() for answer in answers]

    cut, whole = asyncio.run(talk())
    word = {"responses": '"incomplete"'}.get(path, LIMITS[path])
    assert (word in cut, word in whole) == (True, False)


def conversed(talk: Callable[[openai.AsyncOpenAI], Awaitable[object]]) -> list[list[tuple[object, object]]]:
    """The roles and contents of every call of a dialogue over /v1/responses."""

    async def all_calls() -> list[list[tuple[object, object]]]:
        probe = Probe()
        async with listening(probe) as url, openai_client(url) as client:
            await talk(client)
        calls = [await probe.call(number) for number in range(1, 4)]
        return [[(each["role"], text(each["content"])) for each in call.messages] for call in calls if call is not None]

    return asyncio.run(all_calls())


def text(content: object) -> object:
    return content[0]["text"] if isinstance(content, list) else content


def test_a_previous_response_is_what_the_model_saw_and_said_without_its_instructions():
    async def talk(client: openai.AsyncOpenAI) -> None:
        first = await client.responses.create(model="m", instructions=SYSTEM, input=ASKED)
        await client.responses.create(model="m", previous_response_id=first.id, input=NEW)

    assert conversed(talk)[1] == [("user", ASKED), ("assistant", ANSWER), ("user", NEW)]


def test_items_can_be_referred_to():
    async def talk(client: openai.AsyncOpenAI) -> None:
        first = await client.responses.create(model="m", input=ASKED)
        said: Any = [TURNS[0], {"type": "item_reference", "id": first.output[0].id}, TURNS[2]]
        await client.responses.create(model="m", input=said)

    assert conversed(talk)[1] == [("user", ASKED), ("assistant", ANSWER), ("user", NEW)]


def test_compaction_keeps_user_messages_and_hides_the_rest_in_one_item():
    async def talk(client: openai.AsyncOpenAI) -> None:
        items: Any = TURNS[:2]
        compacted = await client.responses.compact(model="m", input=items)
        said: Any = [*(item.model_dump(exclude_none=True, warnings=False) for item in compacted.output), TURNS[2]]
        await client.responses.create(model="m", input=said)

    assert conversed(talk)[1] == [
        ("user", ASKED),
        ("system", "What was said so far. [sum#1]"),
        ("user", NEW),
    ]


@pytest.mark.parametrize(
    "asked",
    [{"input": "hi", "previous_response_id": "resp_1"}, {"input": [{"type": "item_reference", "id": "msg_1"}]}],
)
def test_what_the_model_does_not_keep_is_an_error(asked: Any):
    async def talk() -> None:
        async with listening(Probe()) as url, openai_client(url) as client:
            await client.responses.create(model="m", **asked)

    with pytest.raises(openai.APIStatusError, match="not found"):
        asyncio.run(talk())


def requested(method: str, path: str, **fields: Any) -> tuple[int, Any]:
    async def talk() -> tuple[int, Any]:
        async with (
            listening(Probe()) as url,
            aiohttp.ClientSession() as client,
            client.request(method, url.removesuffix("/v1") + path, **fields) as got,
        ):
            return got.status, await got.json()

    return asyncio.run(talk())


@pytest.mark.parametrize("base", ["", "/v1", "/v1/v1"])
@pytest.mark.parametrize("path", ["/chat/completions", "/responses", "/messages"])
def test_every_base_url_works(base: str, path: str):
    status, body = requested("POST", base + path, json={"messages": TURNS, "input": TURNS})

    assert (status, BLUE in json.dumps(body)) == (200, True)


def test_tokens_are_counted_without_a_call():
    async def talk() -> tuple[int, object]:
        probe = Probe()
        async with listening(probe) as url, anthropic_client(url) as client:
            messages: Any = TURNS
            counted = await client.messages.count_tokens(model="m", messages=messages)
        return counted.input_tokens, await probe.call(1)

    assert asyncio.run(talk()) == (sum(len(turn["content"]) for turn in TURNS) // 4 + 1, None)


def test_both_clients_list_the_model():
    async def talk() -> list[str]:
        async with listening(Probe()) as url, openai_client(url) as one, anthropic_client(url) as other:
            return [(await one.models.list()).data[0].id, (await other.models.list()).data[0].id]

    assert asyncio.run(talk()) == ["probe", "probe"]


def test_any_other_path_is_not_found_in_the_form_of_its_client():
    status, body = requested("POST", "/v1/embeddings", json={})
    other_status, other = requested("GET", "/v1/files", headers={"anthropic-version": "2023-06-01"})

    assert (status, body["error"]["type"]) == (404, "invalid_request_error")
    assert (other_status, other["error"]["type"]) == (404, "not_found_error")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
@pytest.mark.parametrize("sent", [b"{", b"[]", b'{"messages": 1, "input": [1]}'])
def test_a_body_that_is_no_request_is_refused(path: str, sent: bytes):
    status, body = requested("POST", path, data=sent, headers={"Content-Type": "application/json"})

    assert (status, body["error"]["type"]) == (400, "invalid_request_error")
