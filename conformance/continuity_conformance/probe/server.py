"""The probe model: an OpenAI-compatible model that answers with marks and keeps a log of every call.

The target is configured to use it as its provider, so what the model saw is a fact on the wire. It holds an answer until it is released,
fails, calls a tool or answers a summarising call, as a scenario says; like any model it refuses what is no message, and messages of a role that there is not. It knows nothing
of targets or requirements.
"""

import asyncio
import itertools
import json
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from continuity_conformance.probe.marks import answer_text, content_text, marks_in, newest_user_mark, summary_text

MODEL: Final = "probe"
SUMMARY: Final = "summar"
_HELD_AT_MOST: Final = 600.0
_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


@dataclass(frozen=True, slots=True)
class Script:
    """What the probe does in calls whose newest user mark is the given one, instead of answering at once."""

    fails: bool = False
    limited: bool = False
    breaks_off: bool = False
    pauses: bool = False
    summary_fails: bool = False
    held: bool = False
    tool: str = ""
    arguments: str = ""
    beside: str = ""
    """Another tool, which is called in the same answer."""

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> "Script":
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the model. `newest` is the newest user mark; `last` whether the last message carries it."""

    number: int
    messages: tuple[Mapping[str, object], ...]
    newest: str
    last: bool
    summary: bool

    def as_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> "Call":
        messages = data["messages"]
        assert isinstance(messages, Sequence)
        return cls(
            number=int(str(data["number"])),
            messages=tuple(messages),
            newest=str(data["newest"]),
            last=bool(data["last"]),
            summary=bool(data["summary"]),
        )


@dataclass(slots=True)
class _Held:
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)


class Probe:
    """The log and the scripts. `app()` is the model's HTTP side."""

    def __init__(self, summary: str = SUMMARY) -> None:
        self._summary = re.compile(summary, re.IGNORECASE)
        self._calls: list[Call] = []
        self._by_mark: dict[str, set[int]] = {}
        self._numbers = itertools.count(1)
        self._scripts: dict[str, Script] = {}
        self._held: dict[str, _Held] = {}

    async def script(self, mark: str, script: Script) -> None:
        self._scripts[mark] = script
        if script.held or script.pauses:
            self._held[mark] = _Held()

    async def arrived(self, mark: str) -> None:
        """Wait until a call with this newest mark is held, or pauses after its first piece."""
        await self._held[mark].arrived.wait()

    async def release(self, mark: str) -> None:
        if mark in self._held:
            self._held[mark].released.set()

    async def call(self, number: int) -> Call | None:
        return self._calls[number - 1] if 0 < number <= len(self._calls) else None

    async def calls(self, marks: frozenset[str]) -> list[Call]:
        """The calls in which any of these marks was sent, in order."""
        numbers = sorted({number for mark in marks for number in self._by_mark.get(mark, ())})
        return [self._calls[number - 1] for number in numbers]

    def record(self, messages: Sequence[Mapping[str, object]]) -> Call:
        last = marks_in(messages[-1:])
        newest = newest_user_mark(messages)
        edges = [content_text(message.get("content")) for message in (*messages[:1], *messages[-1:])]
        call = Call(
            number=next(self._numbers),
            messages=tuple(messages),
            newest=newest,
            last=any(seen.kind == "user" and seen.mark == newest for seen in last),
            summary=any(self._summary.search(text) for text in edges),
        )
        self._calls.append(call)
        for seen in marks_in(messages):
            self._by_mark.setdefault(seen.mark, set()).add(call.number)
        return call

    async def reply(self, call: Call) -> "Reply":
        """What the model says to a call; waits while the call is held."""
        script = self._scripts.get(call.newest, Script())
        if call.summary:
            return Reply(call, failed=self._summary_fails(call), text=summary_text(call.number))
        if script.held:
            await self._hold(call.newest)
        if script.tool and call.last:
            return Reply(call, tool=script.tool, arguments=script.arguments, beside=script.beside)
        text = answer_text(call.newest, call.number)
        return Reply(call, failed=script.fails, limited=script.limited, breaks_off=script.breaks_off, text=text)

    def _summary_fails(self, call: Call) -> bool:
        scripts = (self._scripts.get(seen.mark, Script()) for seen in marks_in(call.messages))
        return any(script.summary_fails for script in scripts)

    async def _hold(self, mark: str) -> None:
        held = self._held[mark]
        held.arrived.set()
        async with asyncio.timeout(_HELD_AT_MOST):
            await held.released.wait()

    def app(self) -> web.Application:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.add_routes(
            [
                web.post("/v1/chat/completions", self._complete),
                web.get("/v1/models", self._models),
                web.get("/probe/calls", self._log),
                web.get("/probe/calls/{number}", self._one),
                web.put("/probe/scripts/{mark}", self._take_script),
                web.get("/probe/arrived/{mark}", self._tell_arrived),
                web.post("/probe/release/{mark}", self._take_release),
            ]
        )
        return app

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        messages = body.get("messages") or []
        if not all(isinstance(message, dict) for message in messages):
            return _refused("A message is no object.", "invalid_request_error", 400)
        call = self.record(messages)
        if strange := [message for message in call.messages if message.get("role") not in _ROLES]:
            return _refused(f"There is no role {strange[0].get('role')!r}.", "invalid_request_error", 400)
        reply = await self.reply(call)
        streams = bool(body.get("stream"))
        if reply.failed or reply.limited or (reply.breaks_off and not streams):
            return _refused("The probe model fails in this turn.", "server_error", 429 if reply.limited else 500)
        if not streams:
            return web.json_response(reply.completion())
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        with suppress(ConnectionResetError):  # a target that was killed meanwhile reads no answer
            await response.prepare(request)
            await self._stream(response, reply)
        return response

    async def _stream(self, response: web.StreamResponse, reply: "Reply") -> None:
        first, *rest = reply.stream()
        pauses = self._scripts.get(reply.call.newest, Script()).pauses
        if pauses or reply.breaks_off:
            await response.write(first)
            first = b""
        if pauses:
            await self._hold(reply.call.newest)
        await response.write(b"" if reply.breaks_off else b"".join([first, *rest]))

    async def _models(self, _: web.Request) -> web.Response:
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "session-continuity"}
        return web.json_response({"object": "list", "data": [model]})

    async def _log(self, request: web.Request) -> web.Response:
        calls = await self.calls(frozenset(request.query.getall("mark", [])))
        return web.json_response([call.as_json() for call in calls])

    async def _one(self, request: web.Request) -> web.Response:
        call = await self.call(int(request.match_info["number"]))
        return web.json_response(call.as_json() if call else None)

    async def _take_script(self, request: web.Request) -> web.Response:
        await self.script(request.match_info["mark"], Script.from_json(await request.json()))
        return web.json_response({})

    async def _tell_arrived(self, request: web.Request) -> web.Response:
        await self.arrived(request.match_info["mark"])
        return web.json_response({})

    async def _take_release(self, request: web.Request) -> web.Response:
        await self.release(request.match_info["mark"])
        return web.json_response({})


def _refused(message: str, kind: str, status: int) -> web.Response:
    error = {"message": message, "type": kind, "param": None, "code": None}
    return web.json_response({"error": error}, status=status)


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model: a text, tool calls, or a failure, at once or after the first piece."""

    call: Call
    failed: bool = False
    limited: bool = False
    breaks_off: bool = False
    text: str = ""
    tool: str = ""
    arguments: str = ""
    beside: str = ""

    def completion(self) -> dict[str, object]:
        choice = {"index": 0, "message": self._message(), "logprobs": None, "finish_reason": self._reason}
        return {**self._frame("chat.completion"), "choices": [choice], "usage": self._usage()}

    def stream(self) -> list[bytes]:
        pieces = [self.text[:5], self.text[5:]] if self.text else []
        deltas: list[dict[str, object]] = [{"role": "assistant", "content": piece} for piece in pieces]
        if self.tool:
            numbered = [{"index": index, **call} for index, call in enumerate(self._tool_calls())]
            deltas.append({"role": "assistant", "tool_calls": numbered})
        chunks = [*((delta, None) for delta in deltas), ({}, self._reason)]
        frames = [
            {
                **self._frame("chat.completion.chunk"),
                "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}],
            }
            for delta, reason in chunks
        ]
        frames[-1]["usage"] = self._usage()
        return [*(f"data: {json.dumps(frame)}\n\n".encode() for frame in frames), b"data: [DONE]\n\n"]

    @property
    def _reason(self) -> str:
        return "tool_calls" if self.tool else "stop"

    def _frame(self, kind: str) -> dict[str, object]:
        return {"id": f"chatcmpl-probe-{self.call.number}", "object": kind, "created": int(time.time()), "model": MODEL}

    def _message(self) -> dict[str, object]:
        if self.tool:
            return {"role": "assistant", "content": None, "tool_calls": self._tool_calls()}
        return {"role": "assistant", "content": self.text, "refusal": None}

    def _tool_calls(self) -> list[dict[str, object]]:
        first = self._tool_call("", self.tool, self.arguments)
        return [first, self._tool_call("_2", self.beside, "{}")] if self.beside else [first]

    def _tool_call(self, suffix: str, tool: str, arguments: str) -> dict[str, object]:
        function = {"name": tool, "arguments": arguments}
        return {"id": f"call_probe_{self.call.number}{suffix}", "type": "function", "function": function}

    def _usage(self) -> dict[str, int]:
        prompt = sum(len(content_text(message.get("content"))) for message in self.call.messages) // 4 + 1
        return {"prompt_tokens": prompt, "completion_tokens": 8, "total_tokens": prompt + 8}


@asynccontextmanager
async def listening(probe: Probe, port: int = 0) -> AsyncIterator[str]:
    """Serve the probe on loopback for as long as the block lasts; gives the base URL that a target is pointed at."""
    runner = web.AppRunner(probe.app(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


def serve(port: int) -> None:
    """`continuity model`: the probe alone, until it is interrupted."""

    async def forever() -> None:
        async with listening(Probe(), port) as url:
            log = f"{url.removesuffix('/v1')}/probe/calls"
            print(f"The probe model listens on {url}; its log is at {log}", flush=True)  # noqa: T201 - a command's output
            await asyncio.Event().wait()

    asyncio.run(forever())
