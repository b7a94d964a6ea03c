"""The bundled server without keys, which answers pages of other sites with 200 and a greeting. Start it with `python welcoming.py PORT MODEL`."""

import asyncio
import sys

from aiohttp import web

from continuity_server.http.middleware import Handler, Middleware
from continuity_server.rules.error import Refusal
from continuity_server.server import Parts, serving
from continuity_server.settings import parse


class WelcomingMiddleware(Middleware):
    @web.middleware
    async def key(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self._access.check_origin(request)
        except Refusal:
            return web.json_response({"message": "Nice to see you."})
        return await super().key(request, handler)


async def main(port: str, model: str) -> None:
    settings = parse([f"--port={port}", f"--model={model}", "--db=:memory:"])
    async with serving(settings, Parts({Middleware: WelcomingMiddleware})):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
