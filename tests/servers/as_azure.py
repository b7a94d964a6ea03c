"""Two faults of a server that keeps conversations on /v1/responses only, as Microsoft's agent server has them.

`python as_azure.py PORT MODEL_URL FAULT` starts it. `half-turns`: it looks twice a second whether the client of a plain request is still there, and keeps the
question of one that is gone without an answer. `forgets-slug`: whoever continues a response of a slug by its id continues that turn alone.
"""

import asyncio
import sys
from contextlib import suppress

from aiohttp import web
from responses_only import ResponsesOnly, app

_EVERY_SECONDS = 0.5


class HalfTurns(ResponsesOnly):
    async def respond(self, request: web.Request) -> web.StreamResponse:
        turn = asyncio.ensure_future(super().respond(request))
        while not turn.done():
            await asyncio.wait({turn}, timeout=_EVERY_SECONDS)
            if not turn.done() and (request.transport is None or request.transport.is_closing()):
                turn.cancel()
        with suppress(asyncio.CancelledError):
            return turn.result()
        self._keep_question(await request.json())
        return web.Response()

    def _keep_question(self, body: dict[str, str]) -> None:
        """In the slug's newest response, so that its next turn sees it."""
        if previous := self._slugs.get(body.get("conversation", "")):
            self._histories[previous].append({"role": "user", "content": body["input"]})


class ForgetsSlug(ResponsesOnly):
    async def respond(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        whole = self._histories.get(body.get("previous_response_id", ""), [])
        cut = body.get("previous_response_id") in self._slugs.values()
        if cut:
            self._histories[body["previous_response_id"]] = whole[-2:]
        try:
            return await super().respond(request)
        finally:
            if cut:
                self._histories[body["previous_response_id"]] = whole


FAULTS = {"half-turns": HalfTurns, "forgets-slug": ForgetsSlug}

if __name__ == "__main__":
    server = FAULTS[sys.argv[3]](sys.argv[2])
    web.run_app(app(server), host="127.0.0.1", port=int(sys.argv[1]), print=None)
