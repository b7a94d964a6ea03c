"""HTTP to the target: one request, one answer, whatever happens on the wire.

Nothing here raises for what a target does: a lost connection, a time-out, broken JSON are an `Answer` with an `error`. The whole
exchange, the body and the stream included, has one deadline. Knows nothing of requirements.

A connection is used again only shortly after its last answer: servers close idle connections after a few seconds, some after one. A request that
meets such a close is lost without any fault of the target.
"""

import asyncio
import io
import ssl
import time
from collections import Counter
from contextvars import ContextVar
from dataclasses import replace
from http.client import HTTPException
from typing import Any, Final, Self
from weakref import WeakSet

import aiohttp
from aiohttp.connector import Connection
from yarl import URL

from continuity_conformance.core.work import current_work
from continuity_conformance.http import raw
from continuity_conformance.http.messages import (
    BODY_AT_MOST,
    EVENT_STREAM,
    TIMED_OUT,
    Answer,
    Request,
    decoded,
    head_of,
    is_end_marker,
    overlong,
)
from continuity_conformance.http.sse import EventStreamDecoder

IDLE_SECONDS: Final = 0.25
"""How long a connection may have been idle before another request is sent on it. Far less than any server's own limit."""
_PIECE: Final = 256 * 1024
_SILENT_TURNS: Final = 4
_PATIENCE: Final = 20
"""After so many answers that were too long, the kit reads less of each."""
_BODY_OF_A_FLOOD: Final = 256 * 1024
_REUSES: Final = ContextVar("_REUSES", default=False)
"""Whether the request that this task is sending goes over a connection that was used before."""


class _Connector(aiohttp.TCPConnector):
    """A pool that keeps a connection only if its last exchange was short.

    The target's clock for idle connections starts with its answer. A busy kit may read that answer late, and must not take the connection for a fresh one.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._taken: dict[object, float] = {}
        self._used = WeakSet[object]()

    async def connect(self, *given: Any, **more: Any) -> Connection:
        connection = await super().connect(*given, **more)
        _REUSES.set(connection.protocol in self._used)
        self._used.add(connection.protocol)
        self._taken[connection.protocol] = time.monotonic()
        return connection

    def _release(self, key: Any, protocol: Any, *, should_close: bool = False) -> None:
        used = time.monotonic() - self._taken.pop(protocol, 0.0)
        super()._release(key, protocol, should_close=should_close or used > IDLE_SECONDS)


class Transport:
    """Sends requests over one connection pool."""

    def __init__(self, turn_seconds: float, trusted: ssl.SSLContext | None = None, *, balanced: bool = False) -> None:
        self._seconds = turn_seconds
        self._balanced = balanced
        self._trusted = trusted or ssl.create_default_context()
        self._session: aiohttp.ClientSession | None = None
        self.sent = 0
        self._late = 0
        self._answered = time.monotonic()
        self._overlong = 0
        self.posts: Counter[str] = Counter()
        """How many POST requests were sent to each origin."""

    async def __aenter__(self) -> Self:
        idle = None if self._balanced else IDLE_SECONDS
        connector = _Connector(limit=0, keepalive_timeout=idle, force_close=self._balanced, ssl=self._trusted)
        self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
        # aiohttp would silently repeat a lost GET or DELETE, even on a new connection: a loss must be seen, and a repeated DELETE is 404.
        self._session._retry_connection = False  # noqa: SLF001 - there is no public switch
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    def at_most(self, requests: int) -> "BoundedTransport":
        """The same transport with at most so many requests in flight; waiting does not count as the target's time."""
        return BoundedTransport(self, requests)

    async def send(self, request: Request) -> Answer:
        started = time.monotonic()
        self.sent += 1
        if request.method == "POST":
            self.posts[request.origin] += 1
        work = current_work()
        work.begin()
        answer = await self._within_deadline(request, self._limit)
        is_turn = request.method == "POST" and answer.accepted
        (work.turns if is_turn else work.others).add(time.monotonic() - started)
        self._overlong += answer.too_long
        self._late = self._late + 1 if answer.timed_out else 0
        self._answered = self._answered if answer.timed_out else time.monotonic()
        return replace(answer, started=started, seconds=time.monotonic() - started)

    async def send_repeatable(self, request: Request) -> Answer:
        """Send a request that may arrive twice: it is sent again, once, where a connection that had been used before was lost."""
        answer = await self.send(request)
        return await self.send(request) if answer.stale else answer

    @property
    def silent(self) -> int:
        """How many requests in a row were not answered in time. Those that were sent at once are not a long silence yet: it lasts several times the time of a turn."""
        lasts = time.monotonic() - self._answered > _SILENT_TURNS * self._seconds
        return self._late if lasts else 0

    @property
    def _limit(self) -> int:
        """The length of the answers that are read. A target that floods the kit again and again loses its patience, so that the run ends."""
        return BODY_AT_MOST if self._overlong < _PATIENCE else _BODY_OF_A_FLOOD

    async def _within_deadline(self, request: Request, limit: int) -> Answer:
        try:
            async with asyncio.timeout(self._seconds):
                return await (self._send_raw(request) if request.needs_raw_socket else self._send(request, limit))
        except TimeoutError:
            return Answer(error=f"{TIMED_OUT} in {self._seconds:g} s")
        except (aiohttp.ClientError, OSError, HTTPException, ValueError) as error:
            return Answer(error=f"connection lost: {_in_words(error)}")

    async def _send(self, request: Request, limit: int) -> Answer:
        assert self._session is not None, "use the transport in its `async with` block"
        _REUSES.set(False)
        sending = self._session.request(
            request.method,
            URL(request.url, encoded=True),
            headers=request.fields,
            data=_in_pieces(request.data),
            allow_redirects=False,
            # A body of bytes without a content type is sent without one.
            skip_auto_headers=("Content-Type",),
        )
        try:
            response = await sending
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            return Answer(error=f"connection lost: {_in_words(error)}", stale=_REUSES.get() and not _began(error))
        if request.on_begin is not None:
            request.on_begin()
        async with response:
            return await (_read_to_the_end if request.on_answer else _read)(response, request, limit)

    async def _send_raw(self, request: Request) -> Answer:
        return await asyncio.to_thread(raw.exchange, request, self._seconds, self._trusted)


class BoundedTransport:
    """A transport that bounds the requests in flight, for a server that many scenarios share."""

    def __init__(self, transport: Transport, requests: int) -> None:
        self._transport = transport
        self._places = asyncio.Semaphore(requests)

    @property
    def sent(self) -> int:
        return self._transport.sent

    @property
    def posts(self) -> Counter[str]:
        return self._transport.posts

    @property
    def silent(self) -> int:
        return self._transport.silent

    async def send(self, request: Request) -> Answer:
        async with self._places:
            return await self._transport.send(request)

    async def send_repeatable(self, request: Request) -> Answer:
        async with self._places:
            return await self._transport.send_repeatable(request)


AnyTransport = Transport | BoundedTransport


def _in_pieces(data: bytes | None) -> bytes | io.BytesIO | None:
    """Send a large body in pieces, so that it does not block the event loop."""
    return io.BytesIO(data) if data is not None and len(data) > _PIECE else data


async def _read(response: aiohttp.ClientResponse, request: Request, limit: int) -> Answer:
    head = head_of(response.status, response.headers.items())
    if head.error:
        response.close()
        return head
    received = bytearray()
    decoder = EventStreamDecoder() if request.hang_up else None
    try:
        async for piece in response.content.iter_any():
            received += piece
            if len(received) > limit:
                response.close()
                return overlong(head, received, limit)
            if decoder is not None and decoder.feed(piece):
                response.close()
                return decoded(head, bytes(received))
    except (aiohttp.ClientError, OSError) as error:
        return decoded(head, bytes(received), f"connection lost: {_in_words(error)}")
    return decoded(head, bytes(received))


async def _read_to_the_end(response: aiohttp.ClientResponse, request: Request, limit: int) -> Answer:
    """Read an answer, and call `on_answer` at its end, without waiting until the target closes the stream."""
    assert request.on_answer is not None, "somebody waits for the end"
    head = head_of(response.status, response.headers.items())
    received, decoder = bytearray(), EventStreamDecoder()
    try:
        async for piece in response.content.iter_any():
            received += piece
            if len(received) > limit:
                response.close()
                return overlong(head, received, limit)
            if head.content_type == EVENT_STREAM and any(is_end_marker(event) for event in decoder.feed(piece)):
                break
    except (aiohttp.ClientError, OSError) as error:
        return decoded(head, bytes(received), f"connection lost: {_in_words(error)}")
    request.on_answer()
    response.close()
    return decoded(head, bytes(received))


def _began(error: Exception) -> bool:
    """Whether the beginning of an answer had arrived when the connection was lost."""
    return isinstance(error, aiohttp.ServerDisconnectedError) and not isinstance(error.message, str)


def _in_words(error: Exception) -> str:
    return str(error) or type(error).__name__
