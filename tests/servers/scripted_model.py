"""A model on a real port. A test sets its next answers and reads the requests that it received."""

import asyncio
import json
import threading
from collections import deque
from dataclasses import dataclass, field

from aiohttp import web


@dataclass(frozen=True)
class Say:
    text: str = "Fine."
    finish: str = "stop"


@dataclass(frozen=True)
class Fail:
    status: int = 500


@dataclass(frozen=True)
class BreakOff:
    """Sends a piece of text, and then closes the connection."""


@dataclass(frozen=True)
class CallTool:
    name: str
    arguments: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Hold:
    """Tells that it was asked, and answers when it is released."""

    asked: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)


def _finish(step):
    return step.finish if isinstance(step, Say) else "stop"


class ScriptedModel:
    """Answers with the steps that are queued, one a call; without any it says that all is fine."""

    def __init__(self):
        self.calls = []
        self.steps = deque()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self):
        self._thread.start()
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._complete)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        self._do(self._runner.setup())
        self._do(web.TCPSite(self._runner, "127.0.0.1", 0).start())
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    def __exit__(self, *exc):
        self._do(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def will(self, *steps):
        self.steps.extend(steps)

    def seen(self, call=-1):
        """What one call was sent, as (role, text) pairs."""
        return [(message["role"], message.get("content")) for message in self.calls[call]["messages"]]

    def _do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(5)

    async def _complete(self, request):
        body = await request.json()
        self.calls.append(body)
        step = self.steps.popleft() if self.steps else Say()
        if isinstance(step, Hold):
            step.asked.set()
            await asyncio.to_thread(step.released.wait, 5)
            step = Say()
        if isinstance(step, Fail):
            return web.json_response({"error": {"message": "no"}}, status=step.status)
        if body.get("stream"):
            return await self._stream(request, step)
        return web.json_response({"choices": [{"message": self._message(step), "finish_reason": _finish(step)}]})

    def _message(self, step):
        if isinstance(step, CallTool):
            function = {"name": step.name, "arguments": json.dumps(step.arguments)}
            call = {"id": f"call_{len(self.calls)}", "type": "function", "function": function}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        return {"role": "assistant", "content": step.text}

    async def _stream(self, request, step):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        broken = isinstance(step, BreakOff)
        delta = self._message(Say("Half") if broken else step)
        for index, call in enumerate(delta.get("tool_calls", [])):
            call["index"] = index
        chunks = [(delta, None)] if broken else [(delta, None), ({}, _finish(step))]
        for piece, reason in chunks:
            chunk = {"choices": [{"index": 0, "delta": piece, "finish_reason": reason}]}
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        if broken:
            request.transport.abort()
            return response
        await response.write(b"data: [DONE]\n\n")
        return response
