"""Which server a scenario plays on.

Calm scenarios share servers (`SharedServers`). A disturbing one (restart, kill, broken store) has a server to itself (`ExclusiveServers`).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from continuity_conformance.scenario.context import Context
from continuity_conformance.target.response_cache import ResponseCache, ResponseLease
from continuity_conformance.target.server import Server

PARTS: Final = 4
"""Into how many parts the places of a server are divided, for checks that send generated requests."""


class ExclusiveServers:
    """At most `size` servers, each started when it is first needed. One that works again after a scenario serves the next."""

    def __init__(self, start: Callable[[], Awaitable[Server]], size: int) -> None:
        self._start = start
        self._places = asyncio.Semaphore(size)
        self._idle: list[Server] = []

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Server]:
        """A server for one scenario alone."""
        async with self._places:
            server = self._idle.pop() if self._idle else await self._start()
            try:
                yield server
            except BaseException:
                await server.stop()
                raise
            if server.broken or not server.runs:
                await server.stop()
            else:
                self._idle.append(server)


class _SharedServer:
    """One of the shared servers, started when it is first needed. `places`: how many scenarios play on it at the same time."""

    def __init__(self, start: Callable[[ResponseCache], Awaitable[Context]], cache: ResponseCache, places: int) -> None:
        self._start = start
        self._context: Context | None = None
        self._starting = asyncio.Lock()
        self.cache = cache
        self.places = places
        self.playing = 0
        self.campaign = asyncio.Lock()
        self.random = asyncio.Lock()

    async def context(self) -> Context:
        async with self._starting:
            self._context = self._context or await self._start(self.cache)
        return self._context


@dataclass(frozen=True, slots=True, eq=False)
class _Admission:
    """A place on a server, with room for the responses of one scenario."""

    server: _SharedServer
    places: int
    lease: ResponseLease | None


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """A scenario that waits.

    `responses`: how many it stores at most. `alone`: nothing else may play on its server. `on`: the only server that
    will do. `places`: how many it needs.
    """

    responses: int
    alone: bool
    admitted: asyncio.Future[_Admission]
    on: _SharedServer | None = None
    places: int = 1


class SharedServers:
    """The servers of calm scenarios: the calibrated one and `servers` - 1 others, for a target that uses only one core.

    A scenario plays on a server that has a free place and room for its responses. Those that store responses begin in the order in which they came.
    Checks that generate their data send thousands of requests. Those that share a campaign use the first server, where scenarios
    leave them half of the places if there are other servers; the rest use the last one. A small response cache is theirs alone while they play.
    Those that play sequences take a place for each of them, so that they play beside each other too.
    """

    def __init__(
        self, first: Context, start: Callable[[ResponseCache], Awaitable[Context]], servers: int, parallel: int
    ) -> None:
        async def calibrated(_: ResponseCache) -> Context:
            return first

        places = max(parallel // 2, 1) if servers > 1 else parallel
        caches = [ResponseCache(first.cache.size) for _ in range(servers - 1)]
        others = [_SharedServer(start, cache, parallel) for cache in caches]
        self._servers = [_SharedServer(calibrated, first.cache, places), *others]
        self._waiting: list[_Waiting] = []
        for server in self._servers:
            server.cache.on_room = self._admit

    @asynccontextmanager
    async def lease(self, responses: int = 0) -> AsyncIterator[Context]:
        """A context to play on, as soon as there is a place with room for these responses."""
        async with self._admission(responses) as server:
            yield await server.context()

    @asynccontextmanager
    async def lease_random(self, *, sharing: bool) -> AsyncIterator[Context]:
        """A context for a check that generates its data. On one server, one check of the campaign and one other play at the same time.

        Each of them takes a part of the places, and sends so many requests at once. A server with few places, or a small cache, gets one request at a time.
        """
        server = self._servers[0 if sharing else -1]
        part = 1 if server.cache.is_small else max(1, server.places // PARTS)
        async with server.campaign if sharing and part > 1 else server.random:
            context, cache = await server.context(), server.cache
            if cache.is_small:
                async with cache.lease(cache.size):
                    yield replace(context, cache=ResponseCache())
            elif part == 1:
                yield context
            else:
                # One request of the campaign is beyond the places: on a server with few places it is the only one.
                async with self._admission(0, on=server, places=part - sharing):
                    yield replace(context, at_once=part)

    @asynccontextmanager
    async def lease_places(self) -> AsyncIterator[Context]:
        """A context for a check that plays sequences. Each of them waits for its own place on the server; in a small cache they play one at a time."""
        server = self._servers[-1]
        if server.cache.is_small:
            async with self.lease_random(sharing=False) as context:
                yield context
        else:
            yield replace(await server.context(), places=_PlacesOn(server, self._admission))

    @asynccontextmanager
    async def lease_alone(self) -> AsyncIterator[Context]:
        """A server on which nothing else plays. Checks that generate their data take the locks first, too."""
        first = self._servers[0]
        async with first.random, first.campaign, self._admission(0, alone=True) as server:
            yield await server.context()

    @asynccontextmanager
    async def _admission(
        self, responses: int, *, alone: bool = False, on: _SharedServer | None = None, places: int = 1
    ) -> AsyncIterator[_SharedServer]:
        waiting = _Waiting(responses, alone, asyncio.get_running_loop().create_future(), on, places)
        # Checks that take several places have the longest way to go, one after the other: they go first.
        self._waiting.insert(0 if places > 1 else len(self._waiting), waiting)
        self._admit()
        try:
            yield (await asyncio.shield(waiting.admitted)).server
        finally:
            self._leave(waiting)

    def _leave(self, waiting: _Waiting) -> None:
        if waiting in self._waiting:
            self._waiting.remove(waiting)
            return
        admission = waiting.admitted.result()
        admission.server.playing -= admission.places
        if admission.lease is not None:
            admission.server.cache.release(admission.lease)
        self._admit()

    def _admit(self) -> None:
        """Let everybody play who can. Nobody who stores responses overtakes another one who does, and nobody overtakes one who needs several places."""
        crowded = False
        for waiting in self._waiting.copy():
            if crowded and waiting.responses:
                continue
            admission = self._alone() if waiting.alone else self._beside_others(waiting)
            if admission is not None:
                self._waiting.remove(waiting)
                waiting.admitted.set_result(admission)
            elif waiting.alone or waiting.places > 1 or not any(self._free(server) for server in self._servers):
                return
            else:
                crowded = crowded or bool(waiting.responses)

    def _beside_others(self, waiting: _Waiting) -> _Admission | None:
        responses = waiting.responses
        servers = [waiting.on] if waiting.on is not None else self._servers
        for server in sorted(servers, key=self._free, reverse=True):
            if self._free(server) < waiting.places:
                continue
            lease = server.cache.try_lease(responses) if responses else None
            if lease is not None or not responses:
                server.playing += waiting.places
                return _Admission(server, waiting.places, lease)
        return None

    def _alone(self) -> _Admission | None:
        server = self._servers[0]
        if server.playing:
            return None
        server.playing += server.places
        return _Admission(server, server.places, None)

    @staticmethod
    def _free(server: _SharedServer) -> int:
        return server.places - server.playing


@dataclass(frozen=True, slots=True)
class _PlacesOn:
    """The places of one shared server."""

    server: _SharedServer
    admission: Callable[..., AbstractAsyncContextManager[_SharedServer]]

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        async with self.admission(0, on=self.server):
            yield
