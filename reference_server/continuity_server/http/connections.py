"""Accept connections, and no more at a time than the process has file descriptors for.

Connections over the bound wait in the backlog of the system, which costs this process nothing: a client that waits a moment is better off than one that is turned
away. As long as one waits, connections on which nothing happens are closed, so that they keep nobody out. Turns keep their places, and so do requests whose body is
still on its way: where these take all places, `/health` waits too.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final

from aiohttp import web

from continuity_server.http.middleware import Handler

logger = logging.getLogger("continuity.connections")

_IDLE_SECONDS: Final = 0.5
"""How long a connection must have been without a request before it is closed for one that waits."""
_LOOK_SECONDS: Final = 0.005
_PAUSE_SECONDS: Final = 0.1
_LOG_SECONDS: Final = 60.0
_BUSY: Final = float("inf")
_SPARE: Final = 64


class Connections:
    """The connections of a server. `most` gives the bound, which may change: it is asked for every connection."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._starting: set[asyncio.Task[None]] = set()
        self._idle_since: dict[asyncio.BaseProtocol, float] = {}
        """Since when a connection has been without a request; `_BUSY`: it has one."""
        self._logged = -_LOG_SECONDS

    @web.middleware
    async def track(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Note which connections have a request."""
        self._idle_since[request.protocol] = _BUSY
        try:
            return await handler(request)
        finally:
            self._idle_since[request.protocol] = _now()

    async def accept(self, listener: socket.socket, server: web.Server) -> None:
        """Accept connections until the task is cancelled. One more than the bound is accepted, and waits for its place."""
        listener.setblocking(False)
        while True:
            connection = await self._next(listener, server)
            try:
                await self._room(server)
            except asyncio.CancelledError:
                connection.close()
                raise
            starting = asyncio.create_task(self._start(connection, server))
            self._starting.add(starting)
            starting.add_done_callback(self._starting.discard)

    async def _next(self, listener: socket.socket, server: web.Server) -> socket.socket:
        """Wait for the next connection. Without a free file descriptor, try again."""
        while True:
            try:
                return (await asyncio.get_running_loop().sock_accept(listener))[0]
            except ConnectionAbortedError:  # it was about one connection
                continue
            except OSError as error:
                self._log(f"no connection can be accepted now: {error.strerror}")
                self._close_idle(server)
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _room(self, server: web.Server) -> None:
        """Wait until there is a place, and make one where a connection does nothing."""
        if self._is_full(server):
            self._log(f"{self._most()} connections are in use, and others wait (--max-connections)")
        while self._is_full(server):
            self._close_idle(server)
            await asyncio.sleep(_LOOK_SECONDS)

    def _is_full(self, server: web.Server) -> bool:
        return len(server.connections) + len(self._starting) >= self._most()

    def _close_idle(self, server: web.Server) -> None:
        """Close the connections that have been idle for a while."""
        latest = _now() - _IDLE_SECONDS
        for connection in server.connections:
            if self._since(connection) <= latest:
                connection.force_close()

    def _since(self, connection: web.RequestHandler) -> float:
        """Since when a connection has been idle. One whose client has not read its answer yet is not."""
        transport = connection.transport
        is_read = transport is not None and not transport.get_write_buffer_size()
        return self._idle_since.get(connection, _BUSY) if is_read else _BUSY

    async def _start(self, connection: socket.socket, server: web.Server) -> None:
        protocol = server()
        self._forget_ended(server)
        self._idle_since[protocol] = _now()
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, connection)
        except OSError:  # the client is gone already
            connection.close()

    def _forget_ended(self, server: web.Server) -> None:
        if len(self._idle_since) > 2 * len(server.connections) + _SPARE:
            self._idle_since = {each: self._idle_since.get(each, _BUSY) for each in server.connections}

    def _log(self, message: str) -> None:
        """Log this, unless something like it was logged a moment ago."""
        if _now() - self._logged >= _LOG_SECONDS:
            self._logged = _now()
            logger.warning("%s", message)


def _now() -> float:
    return asyncio.get_running_loop().time()
