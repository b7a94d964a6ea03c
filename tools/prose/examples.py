"""The wire examples of the spec's prose, made by the reference server: `python tools/prose/examples.py` writes them.

The requests stand here. The answers are those of the reference server, with a model that says what each example needs. Random ids get short ones in the order in which
they appear, times one fixed value, and fields that only OpenAI defines and no example needs are left out.
"""

import asyncio
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp
from aiohttp import web

from continuity_server.server import Parts, serving
from continuity_server.settings import Key, Options, Settings

FOLDER: Final = Path(__file__).parents[2] / "spec" / "continuity_spec" / "prose" / "examples"
KEY: Final = "sk-alice"
SESSION: Final = "trip-to-oslo"
HEADER: Final = "X-Hermes-Session-Id"
_ANSWERS: Final = {"Which city?": "Oslo.", "And the day after?": "Bergen."}
_SHOWN_FIELDS: Final = ("Content-Type", HEADER, "Cache-Control", "Retry-After")
_LEFT_OUT: Final = frozenset(
    {"refusal", "logprobs", "usage", "incomplete_details", "instructions", "metadata", "parallel_tool_calls", "store"}
    | {"temperature", "tool_choice", "tools", "top_p", "truncation"}
)
_TIMES: Final = frozenset({"created", "created_at"})
_TIME: Final = 1760000000
_MINTED: Final = re.compile(r"(chatcmpl-|resp_|sess_|msg_)[0-9a-f]{32}")
_WIDTH: Final = 150


@dataclass(frozen=True)
class Example:
    """One request. `shows`: which of its messages are printed: the request, the answer or only its head, the call of the model."""

    name: str
    path: str
    body: Mapping[str, Any] | None = None
    session: str = ""
    shows: str = "request answer"


EXAMPLES: Final = (
    Example("chat", "/v1/chat/completions", {"model": "any", "messages": [{"role": "user", "content": "Which city?"}]}, SESSION),
    Example(
        "model-call",
        "/v1/chat/completions",
        {"model": "any", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "And the day after?"}]},
        SESSION,
        shows="request call",
    ),
    Example(
        "derived",
        "/v1/chat/completions",
        {"model": "any", "messages": [{"role": "system", "content": "You are a pirate."}, {"role": "user", "content": "Hello"}]},
        shows="request head",
    ),
    Example("responses", "/v1/responses", {"model": "any", "conversation": "holiday plans", "input": "Which city?"}),
    Example(
        "chat-stream",
        "/v1/chat/completions",
        {"model": "any", "stream": True, "messages": [{"role": "user", "content": "And the day after?"}]},
        SESSION,
    ),
    Example("response-stream", "/v1/responses", {"model": "any", "previous_response_id": "resp_1", "stream": True, "input": "And the day after?"}),
    Example("capabilities", "/v1/capabilities"),
    Example("not-found", "/v1/responses", {"model": "any", "previous_response_id": "resp_unknown", "input": "Hello"}),
)  # fmt: skip


@dataclass
class ScriptedModel:
    """A model that answers known questions, in two pieces where it streams. It keeps the bodies of its calls."""

    calls: list[dict[str, Any]] = field(default_factory=list)

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.calls.append(body)
        text = _ANSWERS.get(body["messages"][-1]["content"], "Ahoy!")
        if not body.get("stream"):
            return web.json_response(
                {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
            )
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for delta, reason in (({"content": text[:3]}, None), ({"content": text[3:]}, None), ({}, "stop")):
            chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response


class ShortIds:
    """Short ids for random ones, and back."""

    def __init__(self) -> None:
        self._short: dict[str, str] = {}

    def shorten(self, text: str) -> str:
        return _MINTED.sub(lambda found: self._short.setdefault(found[0], self._next(found[1])), text)

    def lengthen(self, text: str) -> str:
        for long, short in self._short.items():
            text = re.sub(rf"\b{re.escape(short)}\b", long, text)
        return text

    def _next(self, prefix: str) -> str:
        return f"{prefix}{sum(short.startswith(prefix) for short in self._short.values()) + 1}"


async def make_examples() -> dict[str, str]:
    """Play all examples in order on one server, and return their texts by name."""
    model, ids = ScriptedModel(), ShortIds()
    with tempfile.TemporaryDirectory() as folder:
        async with _listening(model) as model_url:
            options = Options(environment="none", turns="serialize")
            settings = Settings(db=f"{folder}/store.db", keys=(Key("alice", KEY),), model=model_url, options=options)
            async with serving(settings, Parts()) as url, aiohttp.ClientSession() as client:
                return {each.name: await _play(client, url, each, model, ids) for each in EXAMPLES}


class _listening:  # noqa: N801 - used like a function
    """The model on a free port."""

    def __init__(self, model: ScriptedModel) -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", model.complete)
        self._runner = web.AppRunner(app, access_log=None)

    async def __aenter__(self) -> str:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()


async def _play(client: aiohttp.ClientSession, url: str, example: Example, model: ScriptedModel, ids: ShortIds) -> str:
    method = "GET" if example.body is None else "POST"
    headers = {"Authorization": f"Bearer {KEY}", **({HEADER: example.session} if example.session else {})}
    data = None if example.body is None else ids.lengthen(json.dumps(example.body))
    sent = {**headers, **({"Content-Type": "application/json"} if data else {})}
    async with client.request(method, url + example.path, headers=sent, data=data) as answer:
        text = ids.shorten(await answer.text())
        head = [f"HTTP/1.1 {answer.status} {answer.reason}"]
        head += [f"{name}: {ids.shorten(answer.headers[name])}" for name in _SHOWN_FIELDS if name in answer.headers]
        body = _shown_body(text, answer.content_type)
    request = _request(method, example.path, sent, example.body)
    call = (
        _request("POST", "{base}/chat/completions", {"Content-Type": "application/json"}, model.calls[-1])
        if model.calls
        else ""
    )
    shown_head = "\n".join(head)
    parts = {"request": request, "head": shown_head, "answer": f"{shown_head}\n\n{body}", "call": call}
    return "\n\n".join(parts[part] for part in example.shows.split()).strip() + "\n"


def _request(method: str, path: str, headers: Mapping[str, str], body: object) -> str:
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\n".join([*lines, "", _json(body)] if body is not None else lines)


def _shown_body(text: str, content_type: str) -> str:
    if content_type != "text/event-stream":
        return _json(_short(json.loads(text)))
    return "\n\n".join("\n".join(_event(event)) for event in text.strip().split("\n\n"))


def _event(event: str) -> Iterator[str]:
    for line in event.splitlines():
        name, _, value = line.partition(": ")
        yield (
            line
            if name != "data" or value == "[DONE]"
            else f"data: {json.dumps(_short(json.loads(value)), separators=(',', ':'))}"
        )


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _TIME if name in _TIMES else _short(item) for name, item in value.items() if _is_shown(name, item)}


def _is_shown(name: str, value: object) -> bool:
    """An `error` that is null, and what only describes the output, is left out; an error that happened stays."""
    if name == "error":
        return value is not None
    return name not in _LEFT_OUT and not (name == "text" and isinstance(value, dict))


def _json(value: object, indent: str = "") -> str:
    """JSON on one line where it is short, else one line for each member."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= _WIDTH or not isinstance(value, dict | list):
        return line
    deeper = indent + "  "
    if isinstance(value, list):
        members = [deeper + _json(item, deeper) for item in value]
        return "[\n" + ",\n".join(members) + f"\n{indent}]"
    members = [f"{deeper}{json.dumps(name)}: {_json(item, deeper)}" for name, item in value.items()]
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"


def main() -> None:
    for name, text in asyncio.run(make_examples()).items():
        (FOLDER / f"{name}.http").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
