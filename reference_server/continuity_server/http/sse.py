"""Server-sent events: the answer opens with the first event, and a client that hangs up does not stop the turn."""

from typing import Any, Final

from aiohttp import web

from continuity_server import fast_json
from continuity_server.http.request import STREAMING
from continuity_server.rules.echo import Fields

_UNREAD: Final = 1024 * 1024
"""How much may wait for a slow reader before the turn waits for it too."""


class EventStream:
    """A streamed answer. STREAM-03: after the client has hung up the turn goes on, and events are dropped."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._response: web.StreamResponse | None = None
        self._gone = False

    @property
    def opened(self) -> bool:
        return self._response is not None

    @property
    def response(self) -> web.StreamResponse:
        assert self._response is not None, "a stream is opened before it is returned"
        return self._response

    @property
    def gone(self) -> bool:
        return self._gone

    async def open(self, fields: Fields) -> None:
        """ECHO-03: the header fields go out before the first event."""
        self._request[STREAMING] = True
        self._response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        self._response.headers.extend(fields)
        if self._request.transport is not None:
            self._request.transport.set_write_buffer_limits(high=_UNREAD)
        try:
            await self._response.prepare(self._request)
        except ConnectionError:
            self._gone = True

    async def send(self, data: dict[str, Any], event: str | None = None) -> None:
        name = f"event: {event}\n".encode() if event else b""
        await self._write(b"%sdata: %s\n\n" % (name, fast_json.written(data)))

    async def done(self) -> None:
        await self._write(b"data: [DONE]\n\n")

    async def _write(self, data: bytes) -> None:
        if self._gone:
            return
        try:
            await self.response.write(data)
        except ConnectionError:
            self._gone = True
