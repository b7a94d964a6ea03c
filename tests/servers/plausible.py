"""Servers that work with any OpenAI client but do not separate sessions. `python plausible.py --help` shows how to start one.

They check keys, refuse malformed requests with the right status and envelope, create ids, stream, and call the model that they are given: everything that a server
can do well without storing conversations.
"""

import argparse
import asyncio
import json
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import aiohttp
from aiohttp import web
from hostile import HEADER, completion, response

CONTEXT = 60
"""How many messages of one session fit into what the model is sent. On a server that plays alone these are all that there are."""
Messages = list[dict[str, object]]


class RefusedError(Exception):
    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": None, "code": None}}


class Nothing:
    """Remembers nothing: the model sees what the request holds, and no id is told."""

    headers: Mapping[str, str] = MappingProxyType({})

    def __init__(self, folder: Path, responses: int) -> None:
        self.responses: dict[str, dict[str, object]] = {}
        self._held = responses
        self._file = folder / "turns.jsonl"

    def view(self, messages: Messages) -> Messages:
        return messages

    def keep(self, messages: Messages, answer: dict[str, object]) -> None:
        pass

    def store(self, stored: dict[str, object]) -> None:
        pass


class OneSession(Nothing):
    """Remembers every turn of everybody, over restarts too, and tells everybody the one id that there is."""

    headers: Mapping[str, str] = MappingProxyType({HEADER: "the-session"})

    def __init__(self, folder: Path, responses: int) -> None:
        super().__init__(folder, responses)
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        self._turns: Messages = [message for line in lines for message in json.loads(line)]

    def view(self, messages: Messages) -> Messages:
        prompts = [message for message in messages if message["role"] in {"system", "developer"}]
        return [*prompts, *self._turns[-CONTEXT:], *_new(messages)]

    def keep(self, messages: Messages, answer: dict[str, object]) -> None:
        turn = [*_new(messages), answer]
        self._turns += turn
        with self._file.open("a") as file:
            file.write(json.dumps(turn) + "\n")

    def store(self, stored: dict[str, object]) -> None:
        """As many as fit; the oldest goes."""
        self.responses[str(stored["id"])] = stored
        if len(self.responses) > self._held:
            del self.responses[next(iter(self.responses))]


def _new(messages: Messages) -> Messages:
    """What comes after the last answer, without prompts."""
    answers = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    start = answers[-1] + 1 if answers else 0
    return [message for message in messages[start:] if message["role"] in {"user", "tool"}]


class Server:
    def __init__(self, memory: Nothing, probe: str, keys: frozenset[str]) -> None:
        self._memory = memory
        self._probe = probe
        self._keys = keys
        self._turn = asyncio.Lock()

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guarded])
        app.router.add_get("/health", self._health)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/responses", self._respond)
        app.router.add_get("/v1/responses/{id}", self._get)
        app.router.add_delete("/v1/responses/{id}", self._delete)
        return app

    @web.middleware
    async def _guarded(self, request: web.Request, handler) -> web.StreamResponse:
        try:
            if request.path != "/health":
                self._check_key(request)
            return await handler(request)
        except RefusedError as refusal:
            return web.json_response(refusal.body, status=refusal.status)
        except web.HTTPException as trouble:
            return web.json_response(RefusedError(trouble.status, "not_found_error", "no").body, status=trouble.status)

    def _check_key(self, request: web.Request) -> None:
        if request.headers.get("Authorization", "").removeprefix("Bearer ") not in self._keys:
            raise RefusedError(401, "authentication_error", "The key is missing or wrong.")

    async def _health(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await _json(request)
        messages = _checked(body.get("messages"))
        answer = await self._answer(messages, body)
        whole = completion(secrets.token_hex(16))
        reason = "tool_calls" if answer.get("tool_calls") else "stop"
        whole["choices"] = [{"index": 0, "message": answer, "finish_reason": reason, "logprobs": None}]
        return await self._send(request, body, whole, [*_chunks(whole, answer, reason), "[DONE]"])

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        body = await _json(request)
        self._check_selection(body)
        answer = await self._answer(_checked(_input(body.get("input"))), body)
        whole = response(secrets.token_hex(16), str(answer["content"]))
        if body.get("store") is not False:
            self._memory.store(whole)
        return await self._send(request, body, whole, _events(whole))

    def _check_selection(self, body: dict[str, object]) -> None:
        slug, previous = body.get("conversation"), body.get("previous_response_id")
        name = slug.get("id") if isinstance(slug, dict) else slug
        if slug is not None and not (isinstance(name, str) and 0 < len(name) <= 256):
            raise RefusedError(400, "invalid_request_error", "conversation is no slug.")
        if slug is not None and previous is not None:
            raise RefusedError(
                400, "invalid_request_error", "conversation and previous_response_id exclude each other."
            )
        if previous is not None and previous not in self._memory.responses:
            raise RefusedError(404, "not_found_error", "There is no such response.")

    async def _get(self, request: web.Request) -> web.Response:
        return web.json_response(self._stored(request))

    async def _delete(self, request: web.Request) -> web.Response:
        gone = self._stored(request)
        del self._memory.responses[str(gone["id"])]
        return web.json_response({"id": gone["id"], "object": "response", "deleted": True})

    def _stored(self, request: web.Request) -> dict[str, object]:
        if request.match_info["id"] not in self._memory.responses:
            raise RefusedError(404, "not_found_error", "There is no such response.")
        return self._memory.responses[request.match_info["id"]]

    async def _answer(self, messages: Messages, body: dict[str, object]) -> dict[str, object]:
        """Ask the model, one turn after the other where there is one session, and remember what there is to remember."""
        stored = body.get("store") is not False
        async with self._turn if self._memory.headers else asyncio.Lock():
            asked = {"model": "m", "messages": self._memory.view(messages), "tools": body.get("tools") or []}
            async with (
                aiohttp.ClientSession() as client,
                client.post(f"{self._probe}/chat/completions", json=asked) as got,
            ):
                if got.status != 200:
                    raise RefusedError(502, "server_error", "The model failed.")
                answer = (await got.json())["choices"][0]["message"]
            if stored:
                self._memory.keep(messages, answer)
        return answer

    async def _send(self, request: web.Request, body: dict[str, object], whole: object, events: list[object]):
        told = self._memory.headers
        if body.get("stream") is not True:
            return web.json_response(whole, headers=told)
        stream = web.StreamResponse(headers={**told, "Content-Type": "text/event-stream"})
        await stream.prepare(request)
        for event in events:
            await stream.write(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode())
        return stream


def _chunks(whole: dict[str, object], answer: dict[str, object], reason: str) -> Iterator[dict[str, object]]:
    calls = answer.get("tool_calls") or []
    called = [{"index": number, **call} for number, call in enumerate(calls)]
    first = (
        {"role": "assistant", "tool_calls": called} if calls else {"role": "assistant", "content": answer["content"]}
    )
    for delta, ended in ((first, None), ({}, reason)):
        choice = {"index": 0, "delta": delta, "finish_reason": ended, "logprobs": None}
        yield {**whole, "object": "chat.completion.chunk", "choices": [choice]}


def _events(whole: dict[str, object]) -> list[object]:
    item = whole["output"][0]
    begun = {**whole, "status": "in_progress", "output": []}
    place = {"output_index": 0, "content_index": 0, "item_id": item["id"]}
    events = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_text.delta", **place, "delta": item["content"][0]["text"], "logprobs": []},
        {"type": "response.completed", "response": whole},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


async def _json(request: web.Request) -> dict[str, object]:
    try:
        body = json.loads(await request.read())
    except ValueError:
        raise RefusedError(400, "invalid_request_error", "The body is no JSON.") from None
    if not isinstance(body, dict):
        raise RefusedError(400, "invalid_request_error", "The body is no object.")
    return body


def _input(given: object) -> object:
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _checked(messages: object) -> Messages:
    if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
        raise RefusedError(400, "invalid_request_error", "There are no messages.")
    if not any(each.get("role") in {"user", "tool"} for each in messages):
        raise RefusedError(400, "invalid_request_error", "There is no new input.")
    return messages


MEMORIES = {"stateless": Nothing, "one session": OneSession}


async def main(options: argparse.Namespace) -> None:
    memory = MEMORIES[options.memory](options.folder, options.responses)
    runner = web.AppRunner(
        Server(memory, options.model, frozenset(options.key)).app(), access_log=None, shutdown_timeout=0.1
    )
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", options.port).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("memory", choices=MEMORIES)
    parser.add_argument("--port", type=int)
    parser.add_argument("--model")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--key", action="append", default=[])
    parser.add_argument("--responses", type=int, default=10_000)
    asyncio.run(main(parser.parse_args()))
