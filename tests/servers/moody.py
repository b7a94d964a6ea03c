"""The bundled server behind a proxy that spoils a few chat turns, or lacks something. Start it with `python moody.py MOOD PORT MODEL [OPTIONS]`.

The moods are those of `MOODS`, and `without GET` and `without DELETE` (of stored responses). Only turns after the first four are spoiled, so that a run can
begin. The options are those of the bundled server.
"""

import asyncio
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
from aiohttp import web

BEFORE = 4
TURN = ("POST", "/v1/chat/completions")


class Proxy:
    def __init__(self, mood: str, backend: str) -> None:
        self._spoil = MOODS.get(mood, never)
        self._missing = mood.removeprefix("without ")
        self._closes = mood == "new lost once"
        self._backend = backend
        self._used: set[object] = set()
        self.turns = 0
        self.spoilt = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        reused = request.protocol in self._used
        self._used.add(request.protocol)
        if self._misses(request):
            return web.json_response({"error": {"message": "There is nothing here."}}, status=404)
        is_turn = (request.method, request.path) == TURN
        self.turns += is_turn
        if is_turn and self.turns > BEFORE:
            spoilt = await self._spoil(self, request, reused)
            if spoilt is not None:
                self.spoilt += 1
                return spoilt
        return await self._forward(request, body)

    def _misses(self, request: web.Request) -> bool:
        """A server that lacks an operation does not declare its capabilities either."""
        if self._missing not in {"GET", "DELETE"}:
            return False
        is_missing = request.method == self._missing and request.path.startswith("/v1/responses/")
        return is_missing or request.path == "/v1/capabilities"

    async def _forward(self, request: web.Request, body: bytes) -> web.Response:
        fields = {name: value for name, value in request.headers.items() if name.lower() not in {"host", "connection"}}
        async with aiohttp.request(
            request.method, self._backend + request.path_qs, headers=fields, data=body or None
        ) as answer:
            text = await answer.read()
            kept = {
                name: value
                for name, value in answer.headers.items()
                if name.lower() not in {"content-length", "transfer-encoding", "connection", "date", "server"}
            }
            forwarded = web.Response(status=answer.status, headers=kept, body=text)
        if self._closes:
            forwarded.force_close()
        return forwarded


async def _lose(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.close()
    return web.Response()


async def never(_: Proxy, __: web.Request, ___: bool) -> web.Response | None:
    """Spoils nothing."""
    return None


async def stale_once(proxy: Proxy, request: web.Request, reused: bool) -> web.Response | None:
    """Closes a connection that was used before, once, instead of an answer."""
    return await _lose(request) if reused and not proxy.spoilt else None


async def stale_always(_: Proxy, request: web.Request, reused: bool) -> web.Response | None:
    return await _lose(request) if reused else None


async def new_lost_once(proxy: Proxy, request: web.Request, reused: bool) -> web.Response | None:
    """Closes a new connection, once, instead of an answer."""
    return await _lose(request) if not reused and not proxy.spoilt else None


async def limited_once(proxy: Proxy, _: web.Request, __: bool) -> web.Response | None:
    return None if proxy.spoilt else web.json_response({"error": {"message": "later"}}, status=429)


async def slow_once(proxy: Proxy, _: web.Request, __: bool) -> web.Response | None:
    if proxy.spoilt:
        return None
    proxy.spoilt += 1
    await asyncio.sleep(30)
    return web.Response()


async def error_once(proxy: Proxy, _: web.Request, __: bool) -> web.Response | None:
    return None if proxy.spoilt else web.json_response({"error": {"message": "oops"}}, status=500)


async def dies(_: Proxy, __: web.Request, ___: bool) -> web.Response | None:
    print("Segmentation fault", flush=True)
    sys.exit(139)


Spoil = Callable[[Proxy, web.Request, bool], Awaitable[web.Response | None]]
MOODS: dict[str, Spoil] = {
    "stale once": stale_once,
    "stale always": stale_always,
    "new lost once": new_lost_once,
    "429 once": limited_once,
    "slow once": slow_once,
    "500 once": error_once,
    "dies": dies,
}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


async def main(mood: str, port: str, model: str, *options: str) -> None:
    backend = _free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = (f"--port={backend}", f"--db={Path(folder) / 'moody.db'}", f"--model={model}", *options)
        server = await asyncio.create_subprocess_exec(sys.executable, "-m", "continuity_server", *command)
        while not _listens(backend):  # noqa: ASYNC110 - there is no event for a port
            await asyncio.sleep(0.02)
        proxy = Proxy(mood, f"http://127.0.0.1:{backend}")
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", proxy.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", int(port)).start()
        try:
            await server.wait()
        finally:
            if server.returncode is None:
                server.kill()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
