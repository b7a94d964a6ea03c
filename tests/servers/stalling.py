"""A proxy that never answers turns by slug and forwards everything else to another server. Start it with `python stalling.py URL`."""

import asyncio
import sys

import aiohttp
from aiohttp import web

KEPT = frozenset({"content-type", "x-hermes-session-id", "cache-control", "access-control-allow-origin"})


def passing(upstream: str, session: aiohttp.ClientSession):
    async def answer(request: web.Request) -> web.Response:
        body = await request.read()
        if b'"conversation"' in body:
            await asyncio.Event().wait()
        headers = {name: value for name, value in request.headers.items() if name != "Host"}
        async with session.request(request.method, upstream + request.path_qs, data=body, headers=headers) as given:
            kept = [(name, value) for name, value in given.headers.items() if name.lower() in KEPT]
            return web.Response(status=given.status, body=await given.read(), headers=kept)

    return answer


async def main(upstream: str) -> None:
    async with aiohttp.ClientSession() as session:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", passing(upstream, session))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
