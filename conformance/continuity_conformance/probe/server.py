"""The probe model: a model that speaks OpenAI's and Anthropic's APIs, answers with marks and keeps a log of every call.

The target uses it as its model, so the log shows exactly what the target sent. A scenario can make it hold an answer, fail, or
call a tool (`Script`). Like any model it refuses items that are not messages, and messages with an unknown role. This module
knows nothing about targets or requirements.
"""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

from continuity_conformance.probe.marks import (
    DEFAULT_PATTERN,
    SAME_CALL,
    SummaryCalls,
    answer_text,
    content_text,
    estimated_tokens,
    marks_in,
    newest_user_mark,
    summary_text,
)
from continuity_conformance.probe.reply import CalledTool, ModelCall, ModelReply
from continuity_conformance.probe.script import Script
from continuity_conformance.probe.upstream.routes import COUNT, formats, models, nowhere, usual_path
from continuity_conformance.probe.upstream.wire import MalformedError, openai_error

_MAX_HOLD_SECONDS: Final = 600.0
_IDLE_SECONDS: Final = 3600.0
"""The probe closes no idle connection during a run: a call of the target that met such a close would look like a failure of the target."""
_SLOW_SECONDS: Final = 0.02
_OUTSIDE_ASCII: Final = 0x80
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


@dataclass(slots=True)
class _Hold:
    """A call that waits. `arrived`: the call is there. `released`: it may go on."""

    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)


class Probe:
    """The log of the calls, and the scripts. `app()` serves the model over HTTP."""

    def __init__(self, summary: str = DEFAULT_PATTERN) -> None:
        self._pattern = summary
        self._summaries = SummaryCalls(summary)
        self._calls: list[ModelCall] = []
        self._by_mark: dict[str, set[int]] = {}
        self._numbers = itertools.count(1)
        self._scripts: dict[str, Script] = {}
        self._holds: dict[str, _Hold] = {}
        self._formats = formats()

    async def script(self, mark: str, script: Script) -> None:
        self._scripts[mark] = script
        if script.held or script.pauses:
            self._holds[mark] = _Hold()

    async def arrived(self, mark: str) -> None:
        """Wait until a call with this newest mark is held, or pauses after its first piece."""
        await self._holds[mark].arrived.wait()

    async def release(self, mark: str) -> None:
        if mark in self._holds:
            self._holds[mark].released.set()

    async def call(self, number: int) -> ModelCall | None:
        return self._calls[number - 1] if 0 < number <= len(self._calls) else None

    async def calls(self, marks: frozenset[str]) -> list[ModelCall]:
        """The calls whose messages carry any of these marks, themselves or in a summary of them, in order."""
        numbers = sorted({number for mark in marks for number in self._by_mark.get(mark, ())})
        return [self._calls[number - 1] for number in numbers]

    def record(
        self, messages: Sequence[Mapping[str, object]], tools: Sequence[object] = (), *, compacts: bool = False
    ) -> ModelCall:
        """Add a call to the log. `compacts`: the API itself says that the call asks for a summary."""
        last = marks_in(messages[-1:])
        newest = newest_user_mark(messages)
        call = ModelCall(
            number=next(self._numbers),
            messages=tuple(messages),
            newest=newest,
            last=any(sighting.kind == "user" and sighting.mark == newest for sighting in last),
            summary=compacts or self._summaries.asks(messages),
            tools=tuple(tools),
        )
        self._calls.append(call)
        for mark in self._marks(call):
            self._by_mark.setdefault(mark, set()).add(call.number)
        return call

    def _marks(self, call: ModelCall) -> set[str]:
        """The marks in a call, and those that its summaries cover: a second summary may be one of the first summary alone."""
        sightings = marks_in(call.messages)
        earlier = [seen.call for seen in sightings if seen.kind == "summary" and 0 < seen.call < call.number]
        covered = (self._marks(self._calls[number - 1]) for number in earlier)
        return {seen.mark for seen in sightings if seen.mark}.union(*covered)

    async def reply(self, call: ModelCall) -> ModelReply:
        """The reply to a call. Waits while the call is held."""
        script = self._scripts.get(call.newest, Script())
        if call.summary:
            return ModelReply(call, failed=self._summary_fails(call), text=_summary_of(call))
        if script.held:
            await self._hold(call.newest)
        text = "" if script.silent else answer_text(call.newest, call.number, outside_ascii=script.slowly)
        if script.tool and call.last:
            return ModelReply(call, text=text if script.speaks else "", tool_calls=_tool_calls(call, script))
        if script.once:
            self._scripts[call.newest] = Script()
        return ModelReply(
            call,
            failed=script.fails,
            limited=script.limited,
            breaks_off=script.breaks_off,
            cut_short=script.cut_short and call.last,
            ends=script.ends,
            whole=script.once,
            text=text,
        )

    def _summary_fails(self, call: ModelCall) -> bool:
        scripts = (self._scripts.get(mark, Script()) for mark in self._marks(call))
        return any(script.summary_fails for script in scripts)

    async def _hold(self, mark: str) -> None:
        hold = self._holds[mark]
        hold.arrived.set()
        async with asyncio.timeout(_MAX_HOLD_SECONDS):
            await hold.released.wait()

    def app(self) -> web.Application:
        app = web.Application(client_max_size=64 * 1024 * 1024, middlewares=[self._at_any_base])
        app.add_routes(
            [
                *(web.post(path, self._complete) for path in self._formats),
                web.get("/v1/models", self._models),
                web.get("/probe/calls", self._get_calls),
                web.get("/probe/calls/{number}", self._get_call),
                web.put("/probe/scripts/{mark}", self._put_script),
                web.put("/probe/summary", self._put_summary),
                web.get("/probe/arrived/{mark}", self._get_arrived),
                web.post("/probe/release/{mark}", self._post_release),
            ]
        )
        return app

    @web.middleware
    async def _at_any_base(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Serve the model also where a client leaves `/v1` out or sends it twice."""
        try:
            return await handler(request)
        except (web.HTTPNotFound, web.HTTPMethodNotAllowed):
            path = usual_path(request.path)
            if request.method == "POST" and path in self._formats:
                return await self._complete(request)
            return models() if (request.method, path) == ("GET", "/v1/models") else nowhere(request)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        path = request.path if request.path in self._formats else usual_path(request.path)
        wire = self._formats[path]
        try:
            body = await _json_object(request)
            with _refusing_other_forms():
                prompt = wire.read(body)
                _require_messages(prompt.messages)
                if path == COUNT:
                    return web.json_response({"input_tokens": estimated_tokens(prompt.messages)})
                call = self.record(prompt.messages, prompt.tools, compacts=prompt.compacts)
                _require_known_roles(call)
        except MalformedError as error:
            return web.json_response(wire.error(str(error), error.status, error.code), status=error.status)
        reply = await self.reply(call)
        streams = bool(body.get("stream")) and not prompt.compacts
        if reply.failed or reply.limited or (reply.breaks_off and not streams):
            status = 429 if reply.limited else 500
            return web.json_response(wire.error("The probe model fails in this turn.", status), status=status)
        if not streams:
            return web.json_response(wire.plain(reply, body))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        with suppress(ConnectionResetError):  # the target may have been killed in the meantime
            await response.prepare(request)
            await self._stream(response, reply, wire.stream(reply, body), wire.end)
        return response

    async def _stream(
        self, response: web.StreamResponse, reply: ModelReply, pieces: Sequence[bytes], end: bytes
    ) -> None:
        first, *rest = pieces
        script = self._scripts.get(reply.call.newest, Script())
        slowly = script.pauses or script.slowly
        if slowly or reply.breaks_off:
            await response.write(first)
            first = b""
        if script.pauses:
            await self._hold(reply.call.newest)
        if slowly:
            await _write_slowly(response, rest)
        else:
            rest = [end if reply.ends else b""] if reply.breaks_off else rest
            await response.write(b"".join([first, *rest]))

    async def _models(self, _: web.Request) -> web.Response:
        return models()

    async def _get_calls(self, request: web.Request) -> web.Response:
        calls = await self.calls(frozenset(request.query.getall("mark", [])))
        return web.json_response([call.as_json() for call in calls])

    async def _get_call(self, request: web.Request) -> web.Response:
        call = await self.call(int(request.match_info["number"]))
        return web.json_response(call.as_json() if call else None)

    async def _put_script(self, request: web.Request) -> web.Response:
        await self.script(request.match_info["mark"], Script.from_json(await request.json()))
        return web.json_response({})

    async def _put_summary(self, request: web.Request) -> web.Response:
        """Set the pattern of a profile; an empty one restores that of the start."""
        try:
            self._summaries = SummaryCalls(str((await request.json())["pattern"]) or self._pattern)
        except re.error as error:
            return web.json_response(openai_error(f"The pattern is no regular expression: {error}", 400), status=400)
        return web.json_response({})

    async def _get_arrived(self, request: web.Request) -> web.Response:
        await self.arrived(request.match_info["mark"])
        return web.json_response({})

    async def _post_release(self, request: web.Request) -> web.Response:
        await self.release(request.match_info["mark"])
        return web.json_response({})


async def _write_slowly(response: web.StreamResponse, pieces: Sequence[bytes]) -> None:
    """Write pieces with a pause before each. One with a letter outside ASCII comes in two parts, cut inside that letter."""
    for piece in pieces:
        inside = next((place for place, byte in enumerate(piece) if byte >= _OUTSIDE_ASCII), -1) + 1
        for part in filter(None, (piece[:inside], piece[inside:])):
            await asyncio.sleep(_SLOW_SECONDS)
            await response.write(part)


def _tool_calls(call: ModelCall, script: Script) -> tuple[CalledTool, ...]:
    first = CalledTool(SAME_CALL if script.same_id else f"call_probe_{call.number}", script.tool, script.arguments)
    second = CalledTool(f"call_probe_{call.number}_2", script.second_tool, "{}")
    return (first, second) if script.second_tool else (first,)


def _summary_of(call: ModelCall) -> str:
    """The summary, in the tags that the target asks for."""
    text, asked = summary_text(call.number), (content_text(message.get("content")) for message in call.messages)
    return f"<summary>{text}</summary>" if any("<summary>" in each for each in asked) else text


async def _json_object(request: web.Request) -> dict[str, Any]:
    try:
        body: object = await request.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise MalformedError("The body must be a JSON object.")
    return body


@contextmanager
def _refusing_other_forms() -> Iterator[None]:
    """A gateway may pass on whatever its client sends. What cannot be read is refused with 400, as by every provider, never answered with 500."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise MalformedError("The body does not have the form of this API.") from error


def _require_messages(messages: object) -> None:
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise MalformedError("messages must be a list of objects.")


def _require_known_roles(call: ModelCall) -> None:
    if unknown := [message for message in call.messages if not _is_known(message.get("role"))]:
        raise MalformedError(f"Unknown role {unknown[0].get('role')!r}.")


def _is_known(role: object) -> bool:
    return isinstance(role, str) and role in _ROLES


@asynccontextmanager
async def listening(probe: Probe, port: int = 0) -> AsyncIterator[str]:
    """Serve the probe on loopback inside the `async with` block. Yields the base URL to configure in the target."""
    runner = web.AppRunner(probe.app(), access_log=None, shutdown_timeout=0.1, keepalive_timeout=_IDLE_SECONDS)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


def serve(port: int, summary: str = DEFAULT_PATTERN) -> None:
    """`continuity model`: serve the probe until it is interrupted."""

    async def forever() -> None:
        async with listening(Probe(summary), port) as url:
            log = f"{url.removesuffix('/v1')}/probe/calls"
            print(f"The probe model listens on {url}; its log is at {log}", flush=True)  # noqa: T201 - a command's output
            await asyncio.Event().wait()

    asyncio.run(forever())
